"""llm=recorded: answers as the file says, missing ones with their error, what they took; nobody is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from answer_inputs import TOPICS, contexts
from ragauge.answering import RecordedAnswers
from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.findings.answers import recorded_costs
from ragauge.findings.cost import costs_of_replies, taken

CONTEXTS = contexts(("q1", 100, "x"), ("q2", 100, ""))


def answered(folder: Path, rows: list[dict[str, Any]], tools: Tools, **how: Any) -> pd.DataFrame:
    path = folder / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return frames.check("answers", RecordedAnswers(path=path, **how).answer(TOPICS, CONTEXTS, tools))


def test_an_empty_text_is_an_answer_that_says_nothing_as_in_prediction_files(tmp_path: Path, tools: Tools) -> None:
    found = answered(tmp_path, [{"qid": "q1", "answer": "Anna."}, {"qid": "q2", "answer": ""}], tools)
    assert found["answer"].tolist() == ["Anna.", ""]
    assert found["status"].tolist() == ["ok", "ok"]
    for content in ({"q1": "Anna.", "q2": ""}, {"answer": {"q1": "Anna.", "q2": ""}, "sp": {"q1": [["A", 0]]}}):
        (tmp_path / "predictions.json").write_text(json.dumps(content))
        read = RecordedAnswers(path=tmp_path / "predictions.json").answer(TOPICS, CONTEXTS, tools)
        assert read["answer"].tolist() == ["Anna.", ""]


@pytest.mark.parametrize("blank", [" ", "\u200b\u2060\ufeff"])
def test_an_answer_that_shows_nothing_is_no_answer(tmp_path: Path, tools: Tools, blank: str) -> None:
    rows = [{"qid": "q1", "answer": " \n\t"}, {"qid": "q2", "answer": blank}]
    found = answered(tmp_path, rows, tools)
    assert found["answer"].isna().all()
    assert set(found["status"]) == {"missing"}
    assert set(found["error"]) == {"the answer holds no visible character"}


def test_thoughts_and_halves_of_characters_are_no_part_of_a_recorded_answer(tmp_path: Path, tools: Tools) -> None:
    rows = [{"qid": "q1", "answer": "<think>Anna?</think>\n\nAnna \ud83d"}, {"qid": "q2", "answer": "<think>The sea"}]
    found = answered(tmp_path, rows, tools)
    assert found["answer"].tolist()[0] == "Anna \ufffd"
    assert found["thoughts"].tolist() == ["Anna?", "The sea"]
    assert found["status"].tolist() == ["ok", "missing"]
    assert found["error"].tolist()[1] == "thoughts and no answer"


def test_answers_with_what_they_took_and_missing_ones_with_their_error(tmp_path: Path, tools: Tools) -> None:
    rows = [
        {"qid": "q2", "answer": None, "error": "time-out", "seconds": 9, "route": 4, "depth": 2, "note": True},
        {"qid": "q1", "answer": "Anna.", "prompt_tokens": 100, "completion_tokens": 7, "cost_usd": 0.25,
         "seconds": 1.5, "rounds": 3, "route": "fast", "depth": 0.5, "status": "taken", "calls": 8, "label": 5},
    ]  # fmt: skip
    found = answered(tmp_path, rows, tools).set_index("qid")
    known = found.astype(object).where(found.notna(), None)
    # The file's own status, calls and label are none of these columns.
    assert known.T.to_dict() == {
        "q1": {
            "n_tokens": 100, "answer": "Anna.", "status": "ok", "error": None, "prompt_tokens": 100,
            "completion_tokens": 7, "cost_usd": 0.25, "seconds": 1.5, "cached": True, "calls": 0, "usage_unknown": 0,
            "rounds": 3, "route": "fast", "depth": 0.5, "note": None,
        },
        "q2": {
            "n_tokens": 100, "answer": None, "status": "missing", "error": "time-out", "prompt_tokens": 0,
            "completion_tokens": 0, "cost_usd": 0, "seconds": 9, "cached": True, "calls": 0, "usage_unknown": 0,
            "rounds": None, "route": "4", "depth": 2, "note": "True",
        },
    }  # fmt: skip
    assert [str(found[name].dtype) for name in ("rounds", "route", "depth", "note")] == [
        "float64",
        "str",
        "float64",
        "str",
    ]
    # Nothing is spent now; what was spent is told apart.
    assert all(value == 0 for value in costs_of_replies(found.reset_index()).values())
    assert taken(found) == (10.5, 0.25)
    assert recorded_costs(found) == {
        "recorded_prompt_tokens": 100, "recorded_completion_tokens": 7, "recorded_cost_usd": 0.25,
        "recorded_seconds_p50": 1.5, "recorded_seconds_p95": 1.5,
    }  # fmt: skip


def test_a_file_that_tells_no_cost_is_not_taken_for_free(tmp_path: Path, tools: Tools) -> None:
    found = answered(tmp_path, [{"qid": q, "response": "x"} for q in ("q1", "q2")], tools)
    assert [value != value for value in taken(found)] == [True, True]
    assert recorded_costs(found) == {}


def test_one_sample_of_several(tmp_path: Path, tools: Tools) -> None:
    rows = [{"qid": q, "answer": f"{q}{n}", "sample": n} for q in ("q1", "q2") for n in (0, 1)]
    assert answered(tmp_path, rows, tools)["answer"].tolist() == ["q10", "q20"]
    assert answered(tmp_path, rows, tools, answer_number=1)["answer"].tolist() == ["q11", "q21"]
    with pytest.raises(DataError, match=r"no answer has llm\.answer_number=2; it has samples \[0, 1\]"):
        answered(tmp_path, rows, tools, answer_number=2)
    del rows[0]["sample"], rows[1]["sample"]
    with pytest.raises(DataError, match="1 qids stand there with two different ones of the answer \\('q1'\\)"):
        answered(tmp_path, rows, tools)


def test_missing_topics_are_an_error_or_missing_answers(tmp_path: Path, tools: Tools) -> None:
    rows: list[dict[str, Any]] = [{"qid": "q1", "answer": "x"}, {"qid": "q7", "answer": "y"}]
    with pytest.raises(DataError, match=r"1 of 2 topics have no answer in it \('q2'\); 1 qids in it are no topic"):
        answered(tmp_path, rows, tools)
    found = answered(tmp_path, rows, tools, on_missing="missing")
    assert found["error"].tolist()[1] == "no answer in answers.jsonl"
    assert answered(tmp_path, [*rows, {"qid": "q2"}], tools)["error"].tolist()[1] == "the file has no answer"
    assert found["status"].tolist() == ["ok", "missing"]
    with pytest.raises(DataError, match="2 of 2 topics have no answer"):  # another dataset's file
        answered(tmp_path, rows[1:], tools, on_missing="missing")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"qid": "q1", "answer": True}, "'answer' is not a string: True"),
        ({"qid": "q1", "answer": "x", "seconds": -1}, "'seconds' is no number from 0: -1"),
        ({"qid": "q1", "answer": "x", "cost": "much"}, "'cost' is no number from 0: 'much'"),
        ({"qid": "q1", "answer": "x", "cost": True}, "'cost' is no number from 0: True"),
        ({"qid": "q1", "answer": "x", "prompt_tokens": 1.5}, "'prompt_tokens' is no whole number: 1.5"),
        ({"qid": "q1", "answer": "x", "seconds": "1e999"}, "'seconds' is no number from 0: '1e999'"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, tools: Tools, row: dict[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=rf"answers\.jsonl, line 2 \(qid='q1'\): {told}"):
        answered(tmp_path, [{"qid": "q2", "answer": "x"}, row], tools)


def test_a_file_without_answers_and_settings_that_cannot_be(tmp_path: Path, tools: Tools) -> None:
    with pytest.raises(DataError, match="no row has an answer; its key is one of response, actual_output"):
        answered(tmp_path, [{"qid": "q1", "contexts": []}], tools)
    with pytest.raises(ConfigError, match=r"llm\.path is not set"):
        RecordedAnswers().files()


@pytest.mark.parametrize("settings", [{"on_missing": "drop"}, {"system": ""}, {"answer_number": -1}])
def test_settings_that_pick_no_answer_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"llm.{next(iter(settings))}="):
        RecordedAnswers(path="nowhere.jsonl", **settings)
