"""Evidence in documents, in single chunks, and in all hits joined: by hand, and against plain scoring."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.measures import Subsequence, Substring, Words
from ragauge.measures.evidence_trail import documents_like, in_corpus, joined

DOCS = pd.DataFrame({"docno": ["d1", "d2", "d3"], "title": "", "text": ["aa bb cc dd", "zz yy xx", "ww vv uu tt"]})
CHUNKS = pd.DataFrame(
    {
        "docno": ["d1%p0", "d1%p1", "d2%p0", "d3%p0"],
        "text": ["aa bb", "cc dd", "zz yy xx", "ww vv uu tt"],
        "parent": ["d1", "d1", "d2", "d3"],
    }
)


def evidence(*parts: tuple[str, str | None, str]) -> pd.DataFrame:
    """Rows of qid, docno, text; parts are numbered within their topic."""
    frame = pd.DataFrame(parts, columns=["qid", "docno", "text"]).astype({"docno": "str"})
    return frame.assign(part=frame.groupby("qid").cumcount())


def run_of(qid: str, *docnos: str) -> pd.DataFrame:
    return pd.DataFrame({"qid": qid, "docno": docnos, "rank": range(len(docnos))})


def test_a_sentence_that_the_chunker_cut_stands_in_the_corpus_and_half_of_it_in_a_chunk() -> None:
    found = in_corpus(Substring(), evidence(("q", "d1", "bb cc")), DOCS, CHUNKS)
    assert found["corpus"].tolist() == [1.0]
    assert found["best_chunk"].tolist() == [2 / 5]  # "bb" or "cc" of five characters
    assert found["holders"].tolist() == [""]


def test_neighbouring_chunks_complete_what_the_chunker_cut() -> None:
    parts = evidence(("q", "d1", "bb cc"))
    assert joined(Substring(), parts, run_of("q", "d1%p0", "d1%p1"), CHUNKS).tolist() == [1.0]
    assert joined(Substring(), parts, run_of("q", "d1%p1", "d1%p0"), CHUNKS).tolist() == [2 / 5]


def test_hits_are_joined_in_the_order_of_their_ranks_whatever_that_of_the_rows() -> None:
    hits = run_of("q", "d1%p0", "d1%p1").iloc[::-1]
    assert joined(Substring(), evidence(("q", "d1", "bb cc")), hits, CHUNKS).tolist() == [1.0]


def test_a_chunk_that_has_all_of_a_part_is_known() -> None:
    found = in_corpus(Substring(), evidence(("q", "d2", "yy xx"), ("q", "d1", "aa")), DOCS, CHUNKS)
    assert found["best_chunk"].tolist() == [1.0, 1.0]
    assert found["holders"].tolist() == ["d2%p0", "d1%p0"]
    hits = run_of("q", "d2%p0")
    parts = evidence(("q", "d2", "yy xx"), ("q", "d1", "aa"))
    assert joined(Substring(), parts, hits, CHUNKS, found["holders"]).tolist() == [1.0, 0.0]


def test_a_part_whose_document_lacks_it_is_looked_for_in_others() -> None:
    parts = evidence(("q", "d1", "vv uu"), ("q", None, "zz yy"), ("q", "gone", "ww vv"))
    found = in_corpus(Substring(), parts, DOCS, CHUNKS)
    assert found["corpus"].tolist() == [1.0, 1.0, 1.0]
    assert found["best_chunk"].tolist() == [1.0, 1.0, 1.0]


def test_a_part_is_looked_for_by_its_rarest_words() -> None:
    common, rare = "a b c d e f g h", "s t u v w x y z"
    docs = DOCS.iloc[:1].assign(text=common).loc[[0] * 6].reset_index(drop=True)
    docs = pd.concat([docs, docs.iloc[:1].assign(text=rare)], ignore_index=True)
    found = documents_like([f"{common} {rare}"], docs)
    assert [numbers.tolist() for numbers in found] == [[0], [6]]


def test_what_is_in_no_document_is_not_in_the_corpus() -> None:
    found = in_corpus(Substring(), evidence(("q", None, "qqq ppp")), DOCS, CHUNKS)
    assert found["corpus"].tolist() == [0.0]
    assert found["best_chunk"].tolist() == [0.0]


def test_without_documents_the_corpus_is_unknown_and_without_chunks_the_best_of_them() -> None:
    parts = evidence(("q", "d1", "aa bb"))
    assert in_corpus(Substring(), parts, DOCS.iloc[:0], None)["corpus"].isna().all()
    found = in_corpus(Substring(), parts, DOCS, None)
    assert found["corpus"].tolist() == [1.0]
    assert found["best_chunk"].isna().all()


def test_a_word_within_a_word_is_not_that_word() -> None:
    docs = pd.DataFrame({"docno": ["d"], "title": "", "text": ["old Yorkshire"]})
    chunks = pd.DataFrame({"docno": ["d%p0"], "text": ["old Yorkshire"], "parent": ["d"]})
    parts = evidence(("q", "d", "York"))
    assert in_corpus(Words(), parts, docs, chunks)["corpus"].tolist() == [0.0]
    assert joined(Words(), parts, run_of("q", "d%p0"), chunks).tolist() == [0.0]
    assert in_corpus(Substring(), parts, docs, chunks)["corpus"].tolist() == [1.0]


def test_a_topic_without_hits_has_none_of_its_evidence() -> None:
    parts = evidence(("p", "d1", "aa bb"), ("q", "d1", "aa bb"))
    assert joined(Substring(), parts, run_of("q", "d1%p0"), CHUNKS).tolist() == [0.0, 1.0]
    assert joined(Substring(), parts, run_of("q").astype({"docno": "str"}), CHUNKS).tolist() == [0.0, 0.0]


def test_a_part_is_held_by_a_hit_of_its_own_topic_alone() -> None:
    parts = evidence(("p", "d1", "aa bb"), ("q", "d1", "aa bb"), ("q", "d2", "yy xx"))
    hits = pd.concat([run_of("p", "d1%p0", "d1%p1", "d3%p0"), run_of("q", "d3%p0")])
    holders = pd.Series(["d1%p0", "d1%p0", "d2%p0"])  # no topic hits the last one
    found = joined(Substring(), parts, hits, CHUNKS, holders)
    assert found.tolist() == [1.0, 1 / 5, 1 / 5]  # of "ww vv uu tt" a space is in both others
    of_holders = joined(Substring(), parts, hits, CHUNKS.assign(text="-"), holders)
    assert of_holders.tolist() == [1.0, 0.0, 0.0]  # the texts of the hits do not count for the first part


def test_passages_have_their_own_texts() -> None:
    passages = pd.DataFrame({"qid": "q", "docno": "d1%p0", "rank": [0], "text": ["aa bb\ncc  dd"]})
    assert joined(Substring(), evidence(("q", "d1", "bb cc dd")), passages).tolist() == [1.0]


WORDS = st.sampled_from(["an", "ana", "banana", "nab", "ban", "a"])
TEXTS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


@pytest.mark.parametrize("measure", [Substring(threads=1), Words(threads=1), Subsequence(threads=1)])
@given(data=st.data())
@settings(max_examples=40)
def test_values_are_those_of_plain_scoring(measure: Any, data: st.DataObject) -> None:
    texts = data.draw(st.lists(TEXTS, min_size=2, max_size=6))
    parents = [f"d{data.draw(st.integers(0, 1))}" for _ in texts]
    chunks = pd.DataFrame({"docno": [f"c{i}" for i in range(len(texts))], "text": texts, "parent": parents})
    docs = pd.DataFrame(
        {
            "docno": ["d0", "d1"],
            "title": "",
            "text": [" ".join(t for t, p in zip(texts, parents, strict=True) if p == d) for d in ("d0", "d1")],
        }
    )
    parts = evidence(*[(q, data.draw(st.sampled_from(["d0", "d1"])), data.draw(TEXTS)) for q in ("p", "p", "q")])
    hits = pd.concat(
        run_of(q, *data.draw(st.lists(st.sampled_from(chunks["docno"].tolist()), unique=True, max_size=4)))
        for q in ("p", "q")
    ).astype({"docno": "str"})

    def plain(part: str, text: str) -> float:
        return float(measure.score([part], text, np.array([len(text)]))[0, 0]) if text else 0.0

    of = dict(zip(chunks["docno"], chunks["text"], strict=True))
    known = in_corpus(measure, parts, docs, chunks)
    found = joined(measure, parts, hits, chunks, known["holders"])
    for row, value in zip(parts.to_dict("records"), found.tolist(), strict=True):
        text = " ".join(of[d] for d in hits.loc[hits["qid"] == row["qid"], "docno"])
        assert value == pytest.approx(plain(row["text"], text))
    for row, value in zip(parts.to_dict("records"), known["corpus"].tolist(), strict=True):
        best = max(plain(row["text"], text) for text in docs["text"])
        own = plain(row["text"], docs.set_index("docno")["text"][row["docno"]])
        assert own - 1e-12 <= value <= best + 1e-12
