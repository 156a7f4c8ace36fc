"""Bands hold whole curves, tests over all budgets rarely reject, and the smallest budget is good enough."""

from __future__ import annotations

import pytest

from simulations.curves import band_coverage, false_alarms, smallest_is_within

pytestmark = pytest.mark.slow


def test_a_band_holds_all_budgets_at_once_where_intervals_do_not() -> None:
    alone, together = band_coverage(120, 400, 200, seed=0)
    assert alone < 0.9
    assert together >= 0.91


def test_a_test_over_all_budgets_rarely_calls_equal_systems_different() -> None:
    alone, together = false_alarms(120, 200, seed=0)
    assert alone > 0.08
    assert together <= 0.08


@pytest.mark.parametrize("right", [False, True])
def test_the_smallest_budget_is_truly_within_the_margin(right: bool) -> None:
    wrong, claimed = smallest_is_within(600, 100, 0, right)
    assert wrong <= 0.08
    assert claimed >= 0.5
