"""The sentences of a job's longest context: one request about them serves every budget.

The contexts of all budgets hold beginnings of the same passages, so a reply about a sentence counts wherever the
sentence stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import pandas as pd

from ragauge.llms.json_replies import quoted
from ragauge.plugins.llm_measures.claims import one_line
from ragauge.texts.sentences import sentence_spans

# Characters of a request's sentences: about 3,000 tokens, so that a model that is served with a window of
# 4,096 sees all of them.
_AT_ONCE = 12_000


class Sentence(NamedTuple):
    """A sentence of a passage, numbered from 1, cut at the end of the longest context.

    there: how many of its characters stand in the context of this job's budget.
    """

    docno: str
    number: int
    text: str
    there: int

    @property
    def whole(self) -> bool:
        """Whether it lies whole in the context of this job's budget."""
        return self.there == len(self.text)


Part = tuple[Sentence, ...]


def parts_by_topic(passages: pd.DataFrame) -> dict[str, list[Part]]:
    """The sentences of every topic's longest context (frame `longest_passages`), in parts of one request each.

    A new part begins after every 12,000 characters by rank, so that a small budget needs the first parts
    alone. In a part the passages are sorted by their text: rankings of the same passages share it.
    """
    found: dict[str, list[list[Sentence]]] = {}
    taken: dict[str, int] = {}  # characters of the sentences so far
    rows = passages.sort_values(["qid", "rank"], kind="stable")
    columns = (rows[name] for name in ("qid", "docno", "text", "chars", "longest"))
    for qid, docno, text, chars, longest in zip(*columns, strict=True):
        for number, (start, end) in enumerate(_spans(text[: max(longest, 0)]), 1):
            parts = found.setdefault(qid, [])
            if taken.get(qid, 0) >= len(parts) * _AT_ONCE:
                parts.append([])
            parts[-1].append(Sentence(docno, number, text[start:end], max(0, min(end, chars) - start)))
            taken[qid] = taken.get(qid, 0) + end - start
    return {qid: [_sorted(part) for part in parts] for qid, parts in found.items()}


@lru_cache(maxsize=1 << 16)  # the jobs of a sweep lay out the same passages
def _spans(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(sentence_spans(text))


def listed(part: Part) -> str:
    """The sentences as JSON strings, one per line, numbered from 1; an empty line between passages."""
    numbers = iter(range(1, len(part) + 1))
    lines = [[f"{next(numbers)}: {quoted(one_line(one.text))}" for one in own] for own in _by_passage(part)]
    return "\n\n".join("\n".join(own) for own in lines)


def _sorted(part: Iterable[Sentence]) -> Part:
    passages = sorted(_by_passage(part), key=lambda own: [one.text for one in own])
    return tuple(one for own in passages for one in own)


def _by_passage(part: Iterable[Sentence]) -> list[list[Sentence]]:
    return [list(own) for _, own in groupby(part, key=lambda one: one.docno)]
