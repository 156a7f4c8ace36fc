"""What stands in a context, passage by passage."""

from __future__ import annotations

import pandas as pd

from ragauge.retrieval.contexts import build_contexts, longest_passages, used_passages
from ragauge.retrieval.order import LongContextOrder
from ragauge.retrieval.passages import passages_of
from ragauge.texts.tokenizers import WordTokenizer

CHUNKS = pd.DataFrame(
    {"docno": ["x%p0", "y%p0", "z%p0"], "text": ["one two three", "four five", "six"],
     "parent": ["x", "y", "z"], "start": 0, "end": [13, 9, 3]}
)  # fmt: skip
RUN = pd.DataFrame({"qid": ["q"] * 3, "docno": ["x%p0", "y%p0", "z%p0"], "score": [3.0, 2.0, 1.0], "rank": [0, 1, 2]})


def used(n: int, order: LongContextOrder | None = None) -> list[tuple[object, ...]]:
    layouts, prefixes = build_contexts(RUN, CHUNKS, WordTokenizer(), [2, 4, 9], ["q", "no hits"], order)
    found = used_passages(layouts, prefixes, passages_of(RUN, CHUNKS), n)
    return list(found[["qid", "position", "rank", "docno", "text", "chars"]].itertuples(index=False, name=None))


def test_a_passage_is_whole_and_says_how_much_of_it_stands_in_the_context() -> None:
    assert used(4) == [
        ("q", 0, 0, "x%p0", "one two three", 13),
        ("q", 1, 1, "y%p0", "four five", 4),
    ]
    assert used(2) == [("q", 0, 0, "x%p0", "one two three", 7)]
    assert [row[-1] for row in used(9)] == [13, 9, 3]


def test_an_order_that_cuts_first_keeps_the_ranks_and_the_whole_texts() -> None:
    found = used(4, LongContextOrder("first"))
    assert {row[3]: row[4:] for row in found} == {
        "x%p0": ("one two three", 13),
        "y%p0": ("four five", 4),
    }
    assert [row[1] for row in found] == [0, 1]


def test_a_longest_context_says_of_each_passage_how_much_a_budget_has() -> None:
    for order in (None, LongContextOrder("first")):
        layouts, prefixes = build_contexts(RUN, CHUNKS, WordTokenizer(), [2, 4, 9], ["q", "no hits"], order)
        for n, chars in ((2, (7, 0, 0)), (4, (13, 4, 0)), (9, (13, 9, 3))):
            found = longest_passages(layouts, prefixes, passages_of(RUN, CHUNKS), n).sort_values("rank")
            assert found["docno"].tolist() == ["x%p0", "y%p0", "z%p0"]
            assert tuple(found["chars"]) == chars
            assert found["longest"].tolist() == [13, 9, 3]
            assert set(found["n_tokens"]) == {n}
