"""Intervals of AUC and rank correlation hold the true values; equal measures are rarely told apart."""

from __future__ import annotations

import pytest

from simulations.foresight import coverage, told_apart

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("population", ["40 topics, 2 systems", "half of the scores are 1"])
def test_intervals_hold_and_equal_measures_are_not_told_apart(population: str) -> None:
    assert min(coverage(population, 80, seed=0).values()) >= 0.86
    assert max(told_apart(population, 80, seed=0).values()) <= 0.15
