"""Which measures a comparison shows, and names and values as its messages and notes say them."""

from __future__ import annotations

from collections.abc import Sequence

from ragauge.contract.answer_measures import besides_rankings
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.measures.rankings import CLASSIC_NAMES

MAX_NAMED = 5  # runs named in a message


def some(names: Sequence[str]) -> str:
    """The first five names, and how many more there are."""
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def short(value: object, width: int = 24) -> str:
    """A value on one line, cut to `width` characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= width else text[: width - 1] + "…"


def chosen_measures(answers: Sequence[AnswerMeasureInfo]) -> list[AnswerMeasureInfo]:
    """The measures that a comparison shows unasked: all, but for rankings' that every job has."""
    kept = {info.name for info in besides_rankings(answers)}
    return [info for info in answers if info.name in kept or info.name not in CLASSIC_NAMES]
