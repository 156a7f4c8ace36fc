"""Intervals of AUC and rank correlation hold the true values; equal measures are rarely told apart."""

from __future__ import annotations

import pytest

from simulations.foresight import coverage, foremost, gains, told_apart

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("population", ["40 topics, 2 systems", "half of the scores are 1"])
def test_intervals_hold_and_equal_measures_are_not_told_apart(population: str) -> None:
    assert min(coverage(population, 80, seed=0).values()) >= 0.86
    assert max(told_apart(population, 80, seed=0).values()) <= 0.15


def test_none_of_twenty_useless_measures_is_said_to_foresee_best() -> None:
    """One of them was in 46 to 49 of a hundred cases."""
    assert foremost(0, 20, 80, 3, 100, seed=0)["claimed"] <= 0.12  # 5 % and three standard errors
    assert foremost(2, 20, 80, 3, 60, seed=0)["held"] >= 0.87
    assert foremost(0, 20, 30, 1, 100, seed=0, base=-2.8)["claimed"] <= 0.12  # it was 62 %: three answers are right


def test_what_says_nothing_beside_the_ir_score_is_not_said_to_add_something() -> None:
    found = gains("nothing", 75, 3, 0, trials=60, seed=0)
    assert found["held"] >= 0.86
    assert found["claimed"] <= 0.08
