"""retriever=trec: the ranking of a run file, by hand, and what it refuses."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.retrieval.retrievers import TrecRun

CHUNKS = pd.DataFrame(
    {
        "docno": ["a%p0", "a%p1", "b%p0", "c%p0"],
        "text": ["one", "two", "three", "four"],
        "parent": ["a", "a", "b", "c"],
        "start": 0,
        "end": 3,
    }
)
TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["first?", "second?"]})


def ranked(folder: Path, text: str, **how: Any) -> list[tuple[str, str, int]]:
    path = folder / "some.trec"
    path.write_text(text, encoding="utf-8")
    run = TrecRun(path=str(path), **how).transformer(CHUNKS, folder, None)(TOPICS)
    return list(run[["qid", "docno", "rank"]].itertuples(index=False, name=None))


def test_the_score_decides_and_ties_go_by_docno(tmp_path: Path) -> None:
    text = "q1 Q0 c%p0 1 2.0 me\nq1 Q0 b%p0 9 3.0 me\nq1 Q0 a%p1 2 2.0 me\n\nq2 Q0 c%p0 1 -1e3 me\n"
    assert ranked(tmp_path, text) == [
        ("q1", "b%p0", 0),
        ("q1", "a%p1", 1),
        ("q1", "c%p0", 2),
        ("q2", "c%p0", 0),
    ]


def test_a_document_stands_for_its_chunks_in_order(tmp_path: Path) -> None:
    text = "q1 Q0 b 1 3 me\nq1 Q0 a%p1 2 2 me\nq1 Q0 a 3 1 me\nq2 Q0 c 1 1 me\n"
    found = [("q1", "b%p0", 0), ("q1", "a%p1", 1), ("q1", "a%p0", 2), ("q2", "c%p0", 0)]
    assert ranked(tmp_path, text) == found
    assert ranked(tmp_path, text, top_k=1) == [found[0], found[3]]


def test_other_topics_are_passed_over_and_missing_ones_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert ranked(tmp_path, "elsewhere Q0 zzz 1 1 me\nq2 Q0 b 1 1 me\n") == [("q2", "b%p0", 0)]
    assert "nothing for 1 of 2 topics" in caplog.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("q1 Q0 b 1 3\n", "line 1: 5 fields"),
        ("q1 Q0 b 1 3 me\nq1 Q0 c 2 high me\n", "line 2: score 'high'"),
        ("q1 Q0 b 1 nan me\n", "line 1: score 'nan'"),
        ("q1 Q0 b 1 3 me\n\nq1 Q0 b 2 2 me\n", "line 3: docno 'b' stands twice for qid 'q1'"),
        ("q1 Q0 zzz 1 3 me\n", "line 1: docno 'zzz' is neither a document nor a chunk"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        ranked(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"retriever\.path=.*no such file"):
        TrecRun(path=str(tmp_path / "no.trec")).files()
    with pytest.raises(ConfigError, match="give the path"):
        TrecRun().files()


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.trec").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8 at byte 0"):
        TrecRun(path=str(tmp_path / "x.trec")).transformer(CHUNKS, tmp_path, None)
