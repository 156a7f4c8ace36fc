"""retriever=recorded of files with contexts or docnos: C by hand, names, several systems, bad rows."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.retrieval import TopicsFailed
from ragauge.measures.rankings import document_run
from ragauge.retrieval.contexts import build_contexts, contexts_at
from ragauge.retrieval.passages import name_of, with_brought
from ragauge.retrieval.retrievers import RecordedRetrieval
from ragauge.texts.tokenizers import WordTokenizer
from recorded_inputs import CHUNKS, TOPICS


def written(folder: Path, *rows: Any) -> Path:
    path = folder / "some.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def brought(path: Path, **how: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    try:
        run, texts = RecordedRetrieval(path=path, **how).bring(TOPICS, CHUNKS, None)  # type: ignore[arg-type]
    except TopicsFailed as missing:
        assert how["on_missing"] == "missing"
        run, texts = missing.run, missing.texts
    return frames.check("run", run), texts


def contexts(path: Path, **how: Any) -> list[str]:
    """C of every topic, laid out as the pipeline does."""
    run, texts = brought(path, **how)
    chunks = with_brought(CHUNKS, texts, "a test")
    laid = build_contexts(run, chunks, WordTokenizer(), [1000], TOPICS["qid"].tolist())
    return contexts_at(*laid, 1000)["text"].tolist()


def test_contexts_are_laid_out_as_they_are_in_their_order_repeated_ones_too(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"qid": "q2", "contexts": ["not in the corpus", "two", "", "not in the corpus"]},
        {"qid": "q1", "contexts": []},
    )
    assert contexts(path) == ["", "not in the corpus two  not in the corpus"]
    run, texts = brought(path)
    name = name_of("not in the corpus")
    assert run["docno"].tolist() == [name, name_of("two"), name_of(""), f"{name}%p~2"]
    assert set(texts["docno"]) == set(run["docno"])


def test_docnos_stand_for_their_chunks_repeated_ones_too(tmp_path: Path) -> None:
    path = written(tmp_path, {"qid": "q1", "docnos": ["b", "a", "b"]}, {"qid": "q2", "docnos": ["a%p1"]})
    assert contexts(path) == ["three one two three", "two"]
    run, texts = brought(path)
    assert run["docno"].tolist() == ["b%p0", "a%p0", "a%p1", "b%p0~2", "a%p1"]
    assert texts["docno"].tolist() == ["b%p0~2"]
    assert document_run(run)["docno"].tolist() == ["b", "a", "a"]  # so that qrels still fit


def test_a_docno_names_its_context_and_a_chunk_is_told_from_another_wording(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"qid": "q1", "contexts": ["two", "tw", "mine"], "docnos": ["a%p1", "b%p0", "d9"]},
        {"qid": "q2", "contexts": ["my"], "docnos": ["d9"]},
    )
    run, texts = brought(path)
    first, second, third, fourth = run["docno"]
    assert (first, third) == ("a%p1", "d9")
    assert second.startswith("b%p0~")
    assert fourth.startswith("d9%p~")
    assert dict(zip(texts["docno"], texts["text"], strict=True)) == {
        second: "tw", "d9": "mine", fourth: "my",
    }  # fmt: skip
    assert contexts(path) == ["two tw mine", "my"]


def test_one_row_of_each_system_is_read_whether_beside_or_below_each_other(tmp_path: Path) -> None:
    wide = written(
        tmp_path,
        *(
            {"qid": q, "x": {"contexts": [q + "x"]}, "y": {"contexts": []}, "llm": {"answer": "a"}}
            for q in ("q1", "q2")
        ),
    )
    assert contexts(wide, system="x") == ["q1x", "q2x"]
    assert contexts(wide, system="y") == ["", ""]
    assert contexts(wide, system="llm") == ["", ""]  # no contexts: an LLM alone, since others have some
    with pytest.raises(DataError, match=r"it holds several systems, choose one: retriever\.system=x, y, llm"):
        brought(wide)
    with pytest.raises(DataError, match=r"retriever\.system='z' is no system of it: it has x, y, llm"):
        brought(wide, system="z")
    long = written(tmp_path, *({"qid": q, "system": s, "contexts": [q + s]} for s in "xy" for q in ("q1", "q2")))
    assert contexts(long, system="y") == ["q1y", "q2y"]
    with pytest.raises(DataError, match=r"it holds several systems, choose one: retriever\.system=x, y"):
        brought(long)


def test_a_file_without_any_contexts_is_no_llm_alone(tmp_path: Path) -> None:
    path = written(tmp_path, {"qid": "q1", "ctxs": ["x"]}, {"qid": "q2", "ctxs": ["y"]})
    with pytest.raises(DataError, match=r"no row has contexts or docnos; its keys are .*contexts: \[\]"):
        brought(path)
    assert contexts(path, on_missing="missing") == ["", ""]
    with pytest.raises(TopicsFailed, match="2 topics failed"):
        RecordedRetrieval(path=path, on_missing="missing").bring(TOPICS, CHUNKS, None)  # type: ignore[arg-type]


def test_missing_repeated_and_unknown_qids_are_counted_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [{"qid": "q1", "contexts": [text]} for text in "xxy"] + [
        {"qid": "q2", "contexts": None},
        *({"qid": f"z{i}", "contexts": []} for i in range(5)),
    ]
    path = written(tmp_path, *rows)
    with pytest.raises(DataError) as error:
        brought(path)
    told = (
        f"{path}: 1 of 2 topics have no contexts in it ('q2'); "
        "1 qids stand there with two different ones of the contexts ('q1'); "
        "5 qids in it are no topic of the dataset ('z0', 'z1', 'z2', …)"
    )
    assert str(error.value) == (
        f"{told}; recorded.on_missing=missing counts these topics as missing, "
        "retriever.on_missing=empty as ones without hits"
    )
    with caplog.at_level(logging.WARNING):
        assert contexts(path, on_missing="missing") == ["", ""]
    assert caplog.messages == [told]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"qid": "q2", "contexts": "one text"}, r"\(qid='q2'\): 'contexts' is no list of texts: 'one text'"),
        ({"qid": "q2", "contexts": ["x", True]}, r"\(qid='q2'\): entry 2 of 'contexts' is not a string: True"),
        ({"qid": "q2", "contexts": {"a": "b"}}, r"\(qid='q2'\): 'contexts' is no list of texts"),
        ({"qid": "q2", "contexts": ["x"], "docnos": []}, "1 contexts and 0 docnos"),
        ({"qid": "q2", "docnos": ["b", "no"]}, "docno 'no' is neither a document nor a chunk"),
        ({"qid": "q2", "contexts": ["x"], "docnos": ["d 1"]}, "docno 'd 1' is empty or holds white space"),
        ({"qid": 2.5, "contexts": []}, "'qid' is neither a text nor a whole number: 2.5"),
        (["q2"], "expected a JSON object"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path: Path, row: Any, told: str) -> None:
    path = written(tmp_path, {"qid": "q1", "contexts": ["x"]}, row)
    with pytest.raises(DataError, match=rf"some\.jsonl, line 2.*{told}") as error:
        brought(path)
    assert "\n" not in str(error.value)


def test_lines_that_are_no_json_and_settings_that_cannot_be(tmp_path: Path) -> None:
    path = written(tmp_path, {"qid": "q1", "contexts": ["x"]})
    latin = "not UTF-8: it holds the byte 0xff"
    told = {
        b'{"qid": \n': "not a line of JSON",
        b'{"qid": "\xff"}\n': latin,
        b'{"a":' * 100_000: "its values are nested too deep",
    }
    for text, what in told.items():
        path.write_bytes(b'{"qid": "q1", "contexts": []}\n' + text)
        with pytest.raises(DataError, match=rf"some\.jsonl, line 2: {what}"):
            brought(path)
    path.write_text("[{]")
    with pytest.raises(DataError, match="not a JSON file"):
        brought(path)
    with pytest.raises(ConfigError, match=r"retriever\.on_missing='drop': allowed are raise, missing"):
        RecordedRetrieval(path=path, on_missing="drop")
    with pytest.raises(ConfigError, match=r"retriever\.system=' '"):
        RecordedRetrieval(path=path, system=" ")


def test_contexts_beyond_top_k_are_left_out_and_it_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path, {"qid": "q1", "contexts": ["a", "b", "c"]}, {"qid": "q2", "contexts": ["d", "e"]})
    assert contexts(path, top_k=2) == ["a b", "d e"]
    line = "some.jsonl: 1 topics have up to 3 contexts, more than retriever.top_k=2: the rest is left out"
    assert [record.getMessage() for record in caplog.records] == [line]
