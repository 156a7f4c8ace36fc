"""All questions of a region by kind, each with one answer and a fixed position."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ragauge.plugins.fictional.asking import Asker, Question
from ragauge.plugins.fictional.chains import chain
from ragauge.plugins.fictional.dice import Dice
from ragauge.plugins.fictional.entities import Region
from ragauge.plugins.fictional.lacking import false_premise, unanswerable
from ragauge.plugins.fictional.parameters import MOST_HOPS
from ragauge.plugins.fictional.sets import aggregation, comparison, negation

_MISSES = 500  # tries in a row that bring nothing new: the region is taken to have no more
_MAKERS: dict[str, Callable[[Asker], Question | None]] = {
    **{f"chain{hops}": partial(chain, hops=hops) for hops in range(1, MOST_HOPS + 1)},
    "comparison": comparison,
    "aggregation": aggregation,
    "negation": negation,
    "false_premise": false_premise,
    "unanswerable": unanswerable,
}


def kinds(types: tuple[str, ...], max_hops: int) -> list[str]:
    """The kinds of questions, in equal numbers: the types, and chains by length."""
    out: list[str] = []
    for type_ in types:
        out += [f"chain{hops}" for hops in range(1, max_hops + 1)] if type_ == "chain" else [type_]
    return out


def questions_of(region: Region, kind: str, n: int, max_hops: int) -> list[Question]:
    """The region's first n questions of a kind, fewer where it has no more.

    No two have the same words or need the same facts.
    """
    asker = Asker(region, Dice(region.seed, region.number, "questions", kind))
    make = _MAKERS[kind]
    found: list[Question] = []
    taken: set[object] = set()
    misses = 0
    while len(found) < n and misses < _MISSES:
        misses += 1
        question = make(asker)
        if question is None or question.hops > max_hops:
            continue
        # Of three in another order the odd one is the same question.
        facts = frozenset(question.facts) if question.type == "negation" else question.facts
        key = facts or question.query
        if key in taken or question.query in taken:
            continue
        taken |= {key, question.query}
        found.append(question)
        misses = 0
    return found
