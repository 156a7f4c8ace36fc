"""Orders by hand: three passages of two words, at budgets that cut between and inside them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.contract.retrieval import ContextOrder
from ragauge.retrieval.contexts import build_contexts, contexts_at
from ragauge.retrieval.order import LongContextOrder, RankOrder, ReverseOrder
from ragauge.texts.tokenizers import WordTokenizer

TEXTS = ["a1 a2", "b1 b2", "c1 c2", "d1 d2"]  # by rank
PASSAGES = pd.DataFrame(
    {
        "qid": "q",
        "rank": range(4),
        "docno": ["a", "b", "c", "d"],
        "text": pd.Series(TEXTS, dtype="str"),
        "score": [4.0, 3.0, 2.0, 1.0],
    }
)


@pytest.mark.parametrize(
    ("order", "at_3", "at_5", "at_8"),
    [
        (None, "a1 a2 b1", "a1 a2 b1 b2 c1", "a1 a2 b1 b2 c1 c2 d1 d2"),
        (RankOrder("last"), "a1 a2 b1", "a1 a2 b1 b2 c1", "a1 a2 b1 b2 c1 c2 d1 d2"),
        (RankOrder("first"), "a1 a2 b1", "a1 a2 b1 b2 c1", "a1 a2 b1 b2 c1 c2 d1 d2"),
        # All four are put in order, then cut: the best of them is lost.
        (ReverseOrder("last"), "d1 d2 c1", "d1 d2 c1 c2 b1", "d1 d2 c1 c2 b1 b2 a1 a2"),
        (LongContextOrder("last"), "b1 b2 d1", "b1 b2 d1 d2 c1", "b1 b2 d1 d2 c1 c2 a1 a2"),
        # What fits is put in order: the piece that the budget cuts is the worst that fits.
        (ReverseOrder("first"), "b1 a1 a2", "c1 b1 b2 a1 a2", "d1 d2 c1 c2 b1 b2 a1 a2"),
        (LongContextOrder("first"), "b1 a1 a2", "a1 a2 c1 b1 b2", "b1 b2 d1 d2 c1 c2 a1 a2"),
    ],
    ids=repr,
)
def test_contexts_by_hand(order: ContextOrder | None, at_3: str, at_5: str, at_8: str) -> None:
    layouts, prefixes = build_contexts(PASSAGES, None, WordTokenizer(), [3, 5, 8], ["q"], order)
    found = [contexts_at(layouts, prefixes, n).iloc[0] for n in (3, 5, 8)]
    assert [context["text"] for context in found] == [at_3, at_5, at_8]
    assert [context["n_used"] for context in found] == [3, 5, 8]
    for context in found:
        # The passages used are named in the order in which they stand.
        assert list(context["docnos"]) == list(dict.fromkeys(w[0] for w in context["text"].split()))


def test_passages_hold_their_texts_themselves() -> None:
    """A frame `passages` needs no chunks: two of its rows may come from one chunk, with other texts."""
    twice = PASSAGES.assign(docno="a")
    layouts, _ = build_contexts(twice, None, WordTokenizer(), [8], ["q", "r"])
    assert layouts["text"].tolist() == [" ".join(TEXTS), ""]
    assert layouts["docnos"].tolist() == [["a"] * 4, []]


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        (RankOrder(), [0, 1, 2, 3, 4]),
        (ReverseOrder(), [4, 3, 2, 1, 0]),
        (LongContextOrder(), [0, 2, 4, 3, 1]),
    ],
    ids=repr,
)
def test_permutations(order: ContextOrder, wanted: list[int]) -> None:
    assert order.arrange(5).tolist() == wanted
    assert order.arrange(0).tolist() == []
    assert order.arrange(1).dtype == np.int64
    assert order.by_rank == isinstance(order, RankOrder)


@pytest.mark.parametrize("make", [RankOrder, ReverseOrder, LongContextOrder])
def test_a_cut_that_there_is_not(make: type) -> None:
    with pytest.raises(ConfigError, match=r"order\.cut='middle': allowed are last, first"):
        make("middle")
