"""Intervals over clusters hold the truth, and tests find nothing where there is nothing."""

from __future__ import annotations

import numpy as np
import pytest

from simulations.clusters import HELD, INTERVALS, TESTS, UNEVEN, measured

pytestmark = pytest.mark.slow

_TWELVE = np.full(12, 10)  # 120 topics, ten a document


@pytest.mark.parametrize("kind", [*INTERVALS, *HELD])
def test_intervals_over_documents(kind: str) -> None:
    trial = {**INTERVALS, **HELD}[kind][0]
    (over, _), (topics, _) = measured(trial, _TWELVE, 0.3, 80, seed=0)
    assert over >= 0.87
    assert over >= topics
    assert measured(trial, UNEVEN, 0.3, 80, seed=0)[0, 0] >= 0.84


@pytest.mark.parametrize("kind", TESTS)
def test_nothing_is_found_where_there_is_nothing(kind: str) -> None:
    (over, _), _ = measured(TESTS[kind][0], _TWELVE, 0.3, 120, seed=0)
    assert over <= 0.12
