"""Intervals over conversations hold the truth."""

from __future__ import annotations

import pytest

from simulations.conversations import TRIALS, coverage

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", TRIALS)
def test_intervals_over_conversations_hold_the_truth(kind: str) -> None:
    (over, _), _ = coverage(kind, 0.6, 60, seed=0)
    assert over >= 0.87
