"""What ragauge's own measures are called, and which end of each is better.

Terminal, report, comparison, notebook and plug-ins take the words from here. Answer measures and measures of rankings
bring theirs along (`AnswerMeasureInfo`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

# What systems are compared by before all else, as pairs of systems name it.
HEADLINES = ("ir_score", "correct", "hallucination")
# The metrics that pairs name otherwise, and the other way round.
MEASURE_OF = {"correct_share": "correct", "hallucination_share": "hallucination"}
METRIC_OF = {measure: metric for metric, measure in MEASURE_OF.items()}


@dataclass(frozen=True)
class Label:
    """The words for a measure.

    short: the title of a column. noun: in sentences and beside axes, as `short` where it is empty. better: the end that
    a comparison marks as the best. points: whether differences are shown in points of per cent.
    """

    short: str
    noun: str = ""
    better: Literal["higher", "lower", ""] = ""
    points: bool = True


LABELS: Mapping[str, Label] = {
    "ir_score": Label("IR score", better="higher", points=False),
    "correct_share": Label("right", "right answers", "higher"),
    "hallucination_share": Label("hallucination", "hallucinations", "lower"),
    "rejection_share": Label("rejected", "unanswerable questions that were rejected"),
    "judge_share_1": Label("1 lack", "lack of information"),
    "judge_share_2": Label("2 partly wrong", better="lower"),
    "judge_share_3": Label("3 incomplete"),
    "judge_share_4": Label("4 wrong", better="lower"),
    "judge_share_5": Label("5 right", better="higher"),
    "judge_share_missing": Label("no verdict", better="lower"),
    "judge_repeat_agreement": Label("judge asked again, equal"),
    "judge_reorder_agreement": Label("judge, other order, equal"),
    "judge_position_effect": Label("judge's position effect"),
    "predicted_correct_share": Label("predicted right", better="higher"),
    "predicted_hallucination_share": Label("predicted hallucination", better="lower"),
    "cost_usd": Label("cost, USD", points=False),
    "judge_cost_usd": Label("judge's cost, USD", points=False),
}


def label(name: str) -> str:
    """The title of a column: `IR score`, `right`."""
    return _of(name).short


def noun(name: str) -> str:
    """The words in a sentence: `IR score`, `right answers`."""
    return _of(name).noun or label(name)


def difference(name: str) -> str:
    """The title of a column of differences: `IR score`, `right, points`."""
    return label(name) + ", points" * _of(name).points


def title(words: str) -> str:
    """The words with a capital at their head; the rest stays as it is."""
    return words[:1].upper() + words[1:]


def _of(name: str) -> Label:
    return LABELS[METRIC_OF.get(name, name)]
