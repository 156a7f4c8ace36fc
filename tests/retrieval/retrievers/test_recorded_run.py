"""retriever=recorded of a TREC run: its ranking by hand, what it refuses, and as an arm of a hybrid."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.retrieval.retrievers import RecordedRetrieval
from recorded_inputs import CHUNKS, TOPICS


def ranked(folder: Path, text: str, **how: Any) -> list[tuple[str, str, int]]:
    path = folder / "some.trec"
    path.write_text(text, encoding="utf-8")
    run = RecordedRetrieval(path=str(path), **how).transformer(CHUNKS, folder, None)(TOPICS)
    return list(run[["qid", "docno", "rank"]].itertuples(index=False, name=None))


def test_the_score_decides_and_ties_go_by_docno(tmp_path: Path) -> None:
    text = "q1 Q0 c%p0 1 2.0 me\nq1 Q0 b%p0 9 3.0 me\nq1 Q0 a%p1 2 2.0 me\n\nq2 Q0 c%p0 1 -1e3 me\n"
    assert ranked(tmp_path, text) == [
        ("q1", "b%p0", 0),
        ("q1", "a%p1", 1),
        ("q1", "c%p0", 2),
        ("q2", "c%p0", 0),
    ]


def test_comments_such_as_those_of_ir_metadata_are_passed_over(tmp_path: Path) -> None:
    text = "# ir_metadata.start\n# tag: me\n# ir_metadata.end\nq1 Q0 b%p0 1 2.0 me\nq2 Q0 c%p0 1 1.0 me\n"
    assert ranked(tmp_path, text) == [("q1", "b%p0", 0), ("q2", "c%p0", 0)]


def test_a_document_stands_for_its_chunks_in_order(tmp_path: Path) -> None:
    text = "q1 Q0 b 1 3 me\nq1 Q0 a%p1 2 2 me\nq1 Q0 a 3 1 me\nq2 Q0 c 1 1 me\n"
    found = [("q1", "b%p0", 0), ("q1", "a%p1", 1), ("q1", "a%p0", 2), ("q2", "c%p0", 0)]
    assert ranked(tmp_path, text) == found
    assert ranked(tmp_path, text, top_k=1) == [found[0], found[3]]


def test_topics_without_hits_are_an_error_or_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "elsewhere Q0 zzz 1 1 me\nq2 Q0 b 1 1 me\n"
    with pytest.raises(DataError) as error:
        ranked(tmp_path, text)
    unknown = "1 qids in it are no topic of the dataset ('elsewhere')"
    told = f"some.trec: 1 of 2 topics have no hits in it ('q1'); {unknown}"
    assert told in str(error.value)
    assert str(error.value).endswith("on_missing=missing counts these topics as missing")
    with caplog.at_level(logging.WARNING):
        assert ranked(tmp_path, text, on_missing="missing") == [("q2", "b%p0", 0)]
    assert told in caplog.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("q1 Q0 b 1 3\n", "line 1: 5 fields"),
        ("q1 Q0 b 1 3 me\nq1 Q0 c 2 high me\n", "line 2: score 'high'"),
        ("q1 Q0 b 1 nan me\n", "line 1: score 'nan'"),
        ("q1 Q0 b 1 3 me\n\nq1 Q0 b 2 2 me\n", "line 3: docno 'b' stands twice for qid 'q1'"),
        ("q1 Q0 zzz 1 3 me\nq2 Q0 b 1 3 me\n", "line 1: docno 'zzz' is neither a document nor a chunk"),
        ("q7 Q0 b 1 3 me\n", "2 of 2 topics have no hits"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        ranked(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"retriever\.path=.*no such file"):
        RecordedRetrieval(path=str(tmp_path / "no.trec")).files()
    with pytest.raises(ConfigError, match=r"retriever\.path is not set: give the path"):
        RecordedRetrieval().files()


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.trec").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8 at byte 0"):
        RecordedRetrieval(path=str(tmp_path / "x.trec")).transformer(CHUNKS, tmp_path, None)(TOPICS)


def test_texts_of_no_corpus_cannot_be_fused(tmp_path: Path) -> None:
    rows = '{"qid": "q1", "contexts": ["x"]}\n{"qid": "q2", "contexts": []}\n'
    with pytest.raises(DataError, match="1 contexts are in no corpus; only docnos can be fused"):
        ranked(tmp_path, rows)
