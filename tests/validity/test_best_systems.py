"""The set of best systems holds the best one, and the optimism of the top score is about what it is."""

from __future__ import annotations

import pytest

from simulations.best import best_sets, optimism

pytestmark = pytest.mark.slow


def test_the_set_holds_the_best_of_five_close_systems() -> None:
    assert best_sets([0.02, 0.01, 0, 0, -0.1], 30, 200, seed=0).holds >= 0.91


def test_the_wider_set_holds_all_equal_systems_at_once() -> None:
    found = best_sets([0.4] * 5, 120, 200, seed=0, right=True)
    assert found.holds >= 0.91
    assert found.holds_all >= 0.91


def test_the_set_is_smaller_than_what_holm_s_correction_marks() -> None:
    found = best_sets([0.05] + [0] * 14, 120, 10, seed=0, before=True)
    assert found.holds == 1
    assert found.size < found.holm_size - 1


def test_the_expected_optimism_is_about_right_for_equal_systems() -> None:
    truth, estimate = optimism([0] * 5, 120, 2000, seed=0)
    assert truth == pytest.approx(0.0188, abs=0.002)
    assert estimate == pytest.approx(truth, abs=0.003)
