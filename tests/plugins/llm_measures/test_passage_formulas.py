"""Context precision and nugget scores on given verdicts, beside the published scripts' rules.

Each twin follows the arithmetic of the script (RAGAS, TREC RAG's nuggetizer), written anew; where a
measure differs on purpose, the test says in what.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from ragauge.plugins.llm_measures.context_precision import average_precision
from ragauge.plugins.llm_measures.nuggets import nugget_scores

DICE = random.Random(16)


def of_ragas(useful: list[int]) -> float:
    """Precision at every rank times its verdict, over the number of useful passages."""
    numerator = sum((sum(useful[: i + 1]) / (i + 1)) * useful[i] for i in range(len(useful)))
    return numerator / (sum(useful) + 1e-10)


def of_trec(nuggets: list[tuple[str, str]]) -> dict[str, float]:
    """By nugget (importance, assignment); 0 where there is nothing to divide by."""
    points = np.array([{"support": 1.0, "partial_support": 0.5}.get(said, 0.0) for _, said in nuggets])
    strict = np.array([said == "support" for _, said in nuggets], dtype=float)
    vital = np.array([importance == "vital" for importance, _ in nuggets], dtype=bool)
    weight = np.where(vital, 1.0, 0.5)
    return {
        "strict_vital": float(strict[vital].mean()) if vital.any() else 0.0,
        "strict_all": float(strict.mean()) if len(nuggets) else 0.0,
        "vital": float(points[vital].mean()) if vital.any() else 0.0,
        "all": float(points.mean()) if len(nuggets) else 0.0,
        "weighted": float((weight * points).sum() / weight.sum()) if len(nuggets) else 0.0,
    }


def test_context_precision_is_that_of_ragas() -> None:
    for _ in range(300):
        useful = [DICE.randint(0, 1) for _ in range(DICE.randint(1, 12))]
        assert average_precision([bool(v) for v in useful]) == pytest.approx(of_ragas(useful), abs=1e-9)


def test_nugget_scores_are_those_of_trec_wherever_there_is_a_nugget() -> None:
    for _ in range(300):
        nuggets = [
            (DICE.choice(["vital", "okay"]), DICE.choice(["support", "partial_support", "not_support"]))
            for _ in range(DICE.randint(0, 8))
        ]
        found = nugget_scores([kind for kind, _ in nuggets], [said for _, said in nuggets])
        theirs = of_trec(nuggets)
        assert found == {name: pytest.approx(theirs[name]) for name in found}
        # Theirs is 0 where there is no nugget of the kind; here there is no value.
        has_vital = any(kind == "vital" for kind, _ in nuggets)
        assert ("vital" in found) == ("strict_vital" in found) == has_vital
        assert ("all" in found) == bool(nuggets)
