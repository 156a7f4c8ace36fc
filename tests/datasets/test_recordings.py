"""Rows of recorded systems: whose they are, what stands under a key, and what is told of topics that lack one."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.datasets.fields import BadRow
from ragauge.datasets.recordings import (
    Numbers,
    Recorded,
    by_topic,
    check_picking,
    recorded_file,
    recorded_row,
    systems_in,
)


def row(**values: Any) -> Recorded:
    return recorded_row(values, "f.jsonl, line 3", "7")


def test_a_row_is_of_the_system_that_it_names_and_of_those_that_it_holds() -> None:
    assert systems_in({"qid": "a", "answer": "x"}) == []
    assert systems_in({"system": 1, "a": {"answer": "x"}, "b": {}, "note": "text"}) == ["1", "a", "b"]


def test_a_row_without_a_qid_is_known_by_its_number_among_those_of_its_system() -> None:
    assert (row(answer="x").qid, row(qid=5).qid) == ("7", "5")
    assert row(qid="a").place == "f.jsonl, line 3 (qid='a')"
    numbers = Numbers()
    assert [numbers.of({"system": name}) for name in ("a", "b", "a")] == ["1", "1", "2"]
    with pytest.raises(BadRow, match="'qid' is neither a text nor a whole number: True"):
        row(qid=True)


def test_what_stands_under_a_key_is_of_its_type_or_the_row_is_bad() -> None:
    found = row(answer="x", contexts=["a", "b"], cost_usd="0.5", sample=2, colour="red", nothing=None)
    assert (found.text("answer"), found.texts("contexts"), found.number("cost_usd")) == ("x", ["a", "b"], 0.5)
    assert (found.count("sample"), found.count("prompt_tokens"), found.texts("evidence")) == (2, 0, None)
    assert found.extra == {"colour": "red"}
    for values, read, told in (
        ({"answer": ["x"]}, lambda one: one.text("answer"), "'answer'"),
        ({"contexts": "plain"}, lambda one: one.texts("contexts"), "'contexts' is no list of texts: 'plain'"),
        ({"contexts": ["a", True]}, lambda one: one.texts("contexts"), "entry 2 of 'contexts'"),
        ({"cost_usd": -1}, lambda one: one.number("cost_usd"), "'cost_usd' is no number from 0: -1"),
        ({"cost_usd": True}, lambda one: one.number("cost_usd"), "is no number from 0"),
        ({"sample": 1.5}, lambda one: one.count("sample"), "'sample' is no whole number: 1.5"),
    ):
        with pytest.raises(BadRow) as caught:
            read(row(**values))
        assert told in str(caught.value)


def test_a_file_is_asked_for_and_has_to_be_there(tmp_path: Path) -> None:
    for value in (None, " "):
        with pytest.raises(ConfigError, match=r"llm\.path is not set"):
            recorded_file("llm.path", value)
    with pytest.raises(ConfigError, match=r"llm\.path=nowhere: there is no such file"):
        recorded_file("llm.path", "nowhere")
    (tmp_path / "f").touch()
    assert recorded_file("llm.path", str(tmp_path / "f")) == tmp_path / "f"
    check_picking("llm", None, "raise")
    check_picking("llm", "bm25", "missing")
    for system, on_missing in (("", "raise"), (3, "raise"), (None, "drop")):
        with pytest.raises(ConfigError):
            check_picking("llm", system, on_missing)


def test_topics_that_lack_a_value_or_have_two_are_told_or_an_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    file = Path("f.jsonl")
    assert by_topic(file, [("a", 1), ("a", 1), ("b", 2)], ["a", "b"], "answer", "raise") == {"a": 1, "b": 2}
    assert caplog.text == ""
    found = [("a", 1), ("b", 2), ("b", 3), ("z", 4)]
    with pytest.raises(DataError, match=r"1 of 3 topics have no answer in it \('c'\); 1 qids stand there with two"):
        by_topic(file, found, ["a", "b", "c"], "answer", "raise")
    assert by_topic(file, found, ["a", "b", "c"], "answer", "missing") == {"a": 1}
    assert caplog.records[-1].levelname == "WARNING"
    assert by_topic(file, [("a", 1), ("z", 4)], ["a"], "answer", "raise") == {"a": 1}
    assert (caplog.records[-1].levelname, "1 qids in it are no topic" in caplog.text) == ("INFO", True)
    with pytest.raises(DataError, match="1 of 1 topics have no answer"):
        by_topic(file, found, ["c"], "answer", "missing")
