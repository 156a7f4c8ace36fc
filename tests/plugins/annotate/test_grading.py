"""Verdicts are read exactly or not at all, and quotes become evidence parts, each text once."""

from __future__ import annotations

import pandas as pd
import pytest

from ragauge.plugins.annotate.grading import Graded, Verdict, parts_of, read_verdict
from ragauge.plugins.annotate.pool import Pooled, pooled
from ragauge.texts.quotes import find_sentence


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ('{"grade": 3, "quotes": ["a b c", "a b c"]}', Verdict(3, ("a b c",))),
        ('```json\n{"grade": 0, "quotes": []}\n```', Verdict(0, ())),
        ('{"grade": 4, "quotes": []}', None),
        ('{"grade": true, "quotes": []}', None),
        ('{"grade": 2.5, "quotes": []}', None),
        ('{"grade": 2.0, "quotes": []}', Verdict(2, ())),
        ('{"grade": "2", "quotes": []}', Verdict(2, ())),
        ('{"grade": 2}', None),
        ('{"grade": 2, "quotes": [1]}', None),
        ('{"grade": 2, "quotes": "a b c"}', None),
        ('{"grade": 1, "grade": 2, "quotes": []}', None),
        ('[{"grade": 2, "quotes": []}]', None),
        ('Grade: {"grade": 2, "quotes": []}', Verdict(2, ())),
        ('{"grade": 2, "quotes": []} or {"grade": 1, "quotes": []}', None),
    ],
)
def test_a_verdict_is_read_where_it_can_mean_one_thing_alone(reply: str, verdict: Verdict | None) -> None:
    assert read_verdict(reply) == verdict


def test_a_quote_stands_in_its_passage_character_by_character_white_space_aside() -> None:
    text = "A town.\nIts bridge  is (very) old."
    assert find_sentence("Its bridge is (very) old.", text) == (8, 34)
    assert find_sentence("its bridge is (very) old.", text) is None
    assert find_sentence("Its bridge is very old.", text) is None
    assert find_sentence("A town.", text) is None  # two words could stand anywhere
    assert find_sentence("", text) is None


def test_a_pool_holds_each_passage_once_with_all_its_ranks() -> None:
    run = pd.DataFrame({"qid": ["q"] * 3, "docno": ["a%p0", "b%p0", "c%p0"], "rank": [0, 1, 2]})
    other = pd.DataFrame({"qid": ["q", "q", "z"], "docno": ["b%p0", "c%p0", "a%p0"], "rank": [0, 4, 0]})
    chunks = pd.DataFrame(
        {"docno": ["a%p0", "b%p0", "c%p0"], "parent": list("abc"), "start": [0, 5, 9], "text": ["A", "B", "C"]}
    )
    found = pooled({"one": run, "two": other}, chunks, ["q", "none"], 3)
    assert [(p.passage, p.docno, p.start, dict(p.ranks), p.rank) for p in found["q"]] == [
        ("a%p0", "a", 0, {"one": 1}, 1), ("b%p0", "b", 5, {"one": 2, "two": 1}, 1), ("c%p0", "c", 9, {"one": 3}, 3),
    ]  # fmt: skip
    assert found["none"] == []


def graded(passage: str, ranks: dict[str, int], grade: int, text: str, *quotes: str, start: int = 0) -> Graded:
    at = Pooled("q", passage, passage.partition("%")[0], start, text, ranks)
    spans = tuple((text.index(quote), text.index(quote) + len(quote)) for quote in quotes)
    return Graded(at, grade, spans, (), "ok", f"prompt of {passage}")


def test_a_text_that_several_passages_hold_is_one_part_and_what_a_longer_one_holds_is_none() -> None:
    long, short = "The old bridge of Aldor crosses the Aare.", "bridge of Aldor crosses"
    found = parts_of(
        [
            graded(
                "b%p0", {"sim": 2, "bm25": 5}, 3, f"X. {long.replace(' of ', '  of ')}", long.replace(" of ", "  of ")
            ),
            graded("a%p1", {"bm25": 1}, 2, f"{long} Y y y.", long, "Y y y.", start=100),
            graded("c%p0", {"sim": 3}, 2, short, short),
        ]
    )
    assert [(p.docno, p.text, p.start, p.grade, p.rank, p.passages) for p in found] == [
        ("a", long, 100, 3, 1, ("a%p1", "b%p0")), ("a", "Y y y.", 142, 2, 1, ("a%p1",)),
    ]  # fmt: skip
    assert found[0].ranks == {"bm25": 1, "sim": 2}
    assert found[0].prompts == ("prompt of a%p1", "prompt of b%p0")
