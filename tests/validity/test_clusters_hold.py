"""Intervals over clusters hold the truth, and tests find nothing where there is nothing."""

from __future__ import annotations

import numpy as np
import pytest

from simulations import more_clusters as more
from simulations.clusters import HELD, INTERVALS, TESTS, UNEVEN, measured

pytestmark = pytest.mark.slow

_TWELVE = np.full(12, 10)  # 120 topics, ten a document
# A trial of these takes a tenth of a second and more.
_SLOW = ("mean over slices that share documents", "AUC of a measure", "ablation, right answers")


@pytest.mark.parametrize("kind", [*INTERVALS, *HELD])
def test_intervals_over_documents(kind: str) -> None:
    trial = {**INTERVALS, **HELD}[kind][0]
    trials = 40 if kind in _SLOW else 80
    (over, _), (topics, _) = measured(trial, _TWELVE, 0.3, trials, seed=0)
    assert over >= 0.87
    assert over >= topics
    assert measured(trial, UNEVEN, 0.3, trials, seed=0)[0, 0] >= 0.84


@pytest.mark.parametrize("kind", TESTS)
def test_nothing_is_found_where_there_is_nothing(kind: str) -> None:
    trials = 20 if "useless measures" in kind else 60 if "two equal" in kind else 120  # the slowest take a second
    (over, _), _ = measured(TESTS[kind][0], _TWELVE, 0.3, trials, seed=0)
    assert over <= 0.12


@pytest.mark.parametrize("kind", ["share of a cause of failures, judged by strata", "what noise costs an LLM"])
def test_further_intervals_over_documents(kind: str) -> None:
    (over, _), _ = measured(more.INTERVALS[kind][0], np.full(30, 3), 0.3, 40, seed=0)
    assert over >= 0.85


@pytest.mark.parametrize(
    "kind",
    [
        "scores as far apart as the margin: called equivalent",
        "five looks, worse by its tolerance: passes",
        "zone, a useless score: its promise is broken",
    ],
)
def test_margins_looks_and_zones_over_documents(kind: str) -> None:
    (over, _), _ = measured(more.TESTS[kind][0], _TWELVE, 0.3, 60, seed=0)
    assert over <= 0.12
