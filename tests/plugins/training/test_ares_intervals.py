"""Shares by a trained judge and a few labels: intervals hold, and the order is no worse than the labels'."""

from __future__ import annotations

import pytest

from plugins.training.ares_simulation import GOOD, UNEVEN, simulated

pytestmark = pytest.mark.slow


def test_intervals_hold_and_a_good_judge_orders_better_than_the_labels_alone() -> None:
    found = simulated(GOOD, 150, 600, trials=40, seed=0)
    assert found.coverage >= 0.92
    assert found.coverage_labels >= 0.92
    assert found.tau > found.tau_labels + 0.05
    assert found.width < 0.85


def test_own_labels_hold_where_the_judge_errs_more_on_some_systems_and_shared_ones_do_not() -> None:
    found = simulated(UNEVEN, 150, 600, trials=40, seed=0)
    assert found.coverage >= 0.92
    assert found.coverage_judge < 0.5
    assert found.coverage_shared < 0.85
