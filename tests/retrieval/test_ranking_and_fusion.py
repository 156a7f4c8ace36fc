"""Ranks, ties, the check of a reranked run, and fusion: by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.retrieval.fusion import first_seen, reciprocal_rank_fusion
from ragauge.retrieval.ranking import check_reranked, ranked

RUN = pd.DataFrame(
    {"qid": ["b", "b", "b", "a"], "docno": ["x", "z", "y", "x"], "score": [1.0, 2.0, 2.0, 0.5], "rank": 0}
)


def test_ranked_sorts_by_score_then_docno_and_keeps_the_order_of_topics() -> None:
    found = ranked(RUN)
    assert found[["qid", "docno", "rank"]].to_numpy().tolist() == [
        ["b", "y", 0], ["b", "z", 1], ["b", "x", 2], ["a", "x", 0],
    ]  # fmt: skip
    assert ranked(RUN, top_k=1)["docno"].tolist() == ["y", "x"]
    assert ranked(RUN.iloc[:0]).empty


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"docno": ["y", "z", "new", "of a"]}, "Toy: qid='b', docno='new' is not in the run"),
        ({"docno": ["y", "y", "x", "x"]}, "from Toy: row 1 repeats the key"),
        ({"score": [float("nan"), 2.0, 1.0, 0.5]}, "from Toy: column score, row 0"),
        ({"rank": [1, 2, 3, 0]}, "Toy: qid='b', docno='y', rank 1: ranks must be 0, 1, 2"),
        ({"score": [0.0, 2.0, 1.0, 0.5]}, "Toy: qid='b', docno='z', rank 1: a lower rank needs"),
    ],
)
def test_a_reranked_run_that_does_not_keep_to_the_run_is_an_error(change: dict[str, list[object]], says: str) -> None:
    with pytest.raises(DataError) as told:
        check_reranked(RUN, ranked(RUN).assign(**change), "Toy")
    assert says in str(told.value)
    assert "\n" not in str(told.value)


def test_a_reranker_may_leave_out_pairs() -> None:
    assert len(check_reranked(RUN, ranked(RUN, top_k=1), "Toy")) == 2


def test_fusion_by_hand() -> None:
    lists = pd.DataFrame({"qid": "q", "docno": ["x", "y", "y", "z"], "rank": [0, 1, 0, 1]})  # two lists: x y, and y z
    fused = reciprocal_rank_fusion(lists, constant=60)
    assert fused["q", "y"] == pytest.approx(1 / 62 + 1 / 61, abs=1e-12)
    assert fused["q", "x"] == pytest.approx(1 / 61, abs=1e-12)
    assert first_seen(lists).to_dict() == {("q", "x"): 1.0, ("q", "y"): 1 / 2, ("q", "z"): 1 / 3}
