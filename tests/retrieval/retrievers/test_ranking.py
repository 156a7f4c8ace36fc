import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.contract.errors import DataError
from ragauge.retrieval.retrievers.ranking import (
    Hits,
    check_chunks,
    run_frame,
    top_hits,
)


@given(
    scores=st.integers(1, 4).flatmap(
        lambda topics: st.lists(st.lists(st.integers(0, 4), min_size=topics, max_size=topics), min_size=1, max_size=30)
    ),
    top_k=st.integers(1, 35),
    unfound=st.integers(0, 2),
)
def test_ties_across_the_cut_fall_to_the_docno(scores, top_k, unfound):
    """Against a full sort, for an engine that breaks ties its own way and finds no score below a limit."""
    table = np.array(scores, dtype=float).T  # [topics, chunks]
    n_topics, n_chunks = table.shape
    order = np.random.default_rng(n_chunks).permutation(n_chunks)
    calls = []

    def engine(rows, depth):
        calls.append(depth)
        found = []
        for row in rows:
            best = sorted(range(n_chunks), key=lambda c: (-table[row, c], c))[:depth]
            found += [(row, c, table[row, c]) for c in best if table[row, c] >= unfound]
        columns = list(zip(*found, strict=True)) or [(), (), ()]
        return Hits(np.array(columns[0], int), np.array(columns[1], int), np.array(columns[2], float))

    hits = top_hits(engine, np.arange(n_topics), order, top_k)
    expected = [
        (row, c)
        for row in range(n_topics)
        for c in sorted(range(n_chunks), key=lambda c: (-table[row, c], order[c]))[:top_k]
        if table[row, c] >= unfound
    ]
    assert list(zip(hits.topic, hits.chunk, strict=True)) == expected
    assert max(calls) <= n_chunks


def test_run_frame_without_a_score_sorts_as_its_ranks():
    topics = pd.DataFrame({"qid": ["b", "a"], "query": ["x", "y"], "rank": [7, 7], "more": [1, 2]})
    chunks = pd.DataFrame({"docno": ["d0", "d1", "d2"]})
    run = run_frame(topics, chunks, np.array([0, 0, 1]), np.array([2, 0, 1]))
    assert run["qid"].tolist() == ["b", "b", "a"]
    assert run["docno"].tolist() == ["d2", "d0", "d1"]
    assert run["rank"].tolist() == [0, 1, 0]
    assert run["score"].tolist() == [1.0, 0.5, 1.0]
    assert run["more"].tolist() == [1, 1, 2]


def test_chunks_without_text_or_twice():
    with pytest.raises(DataError, match=r"row 1 \(docno='b'\): no text"):
        check_chunks(pd.DataFrame({"docno": ["a", "b"], "text": ["x", None]}))
    with pytest.raises(DataError, match="'a' occurs twice"):
        check_chunks(pd.DataFrame({"docno": ["a", "a"], "text": ["x", "y"]}))
