"""A threshold is called useful where it is, and the best one is among those that are not rejected."""

from __future__ import annotations

import pytest

from simulations.thresholds import threshold_coverage, useful_over_systems, useful_thresholds

pytestmark = pytest.mark.slow


def test_a_useless_score_has_no_useful_threshold_though_it_beats_the_constant_on_the_fit() -> None:
    for n in (30, 120):
        useful, beats = useful_thresholds(n, 0.0, 0.5, 200, seed=0)
        assert useful <= 0.05
        assert beats >= 0.6


def test_a_threshold_that_gains_is_called_useful() -> None:
    assert useful_thresholds(120, 6.0, 0.5, 100, seed=0)[0] >= 0.9


def test_the_best_threshold_is_not_rejected() -> None:
    for n, rows, slope in ((60, 1, 6.0), (120, 5, 6.0)):
        inside, between = threshold_coverage(n, rows, slope, 200, seed=0)
        assert inside >= 0.88
        assert between >= 0.95


def test_a_score_that_tells_systems_apart_alone_is_not_called_useful() -> None:
    """It was in nearly all: systems were pooled, and held against one constant answer."""
    assert useful_over_systems(60, 0.0, 60, seed=0) <= 0.05
    assert useful_over_systems(60, 0.0, 20, seed=0, within=False) >= 0.8
