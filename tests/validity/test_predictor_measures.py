"""What cross-validation says of a score that says nothing, and what its intervals hold."""

from __future__ import annotations

import pytest

from simulations.predictor import (
    calibration_error,
    log_loss_coverage,
    mean_auc,
    outside_error,
    plain_calibration_error,
)

pytestmark = pytest.mark.slow


def test_a_useless_score_has_an_auc_of_one_half() -> None:
    assert mean_auc(30, True, 40, seed=0) == pytest.approx(0.5, abs=0.07)


def test_a_score_that_says_something_keeps_its_auc() -> None:
    assert mean_auc(60, False, 5, seed=0) > 0.7


def test_the_interval_of_the_log_loss_holds_the_mean_over_fits() -> None:
    assert log_loss_coverage(120, 12, seed=0)[1] >= 0.75


def test_perfect_probabilities_have_a_calibration_error_of_about_0() -> None:
    assert plain_calibration_error(120, 1, 100, seed=0) > 0.07
    told, true, covered = calibration_error(120, 1, 100, seed=0)
    assert true == 0
    assert abs(told) < 0.02
    assert covered >= 0.9


def test_a_calibration_error_that_is_there_is_told() -> None:
    told, true, covered = calibration_error(1000, 0.5, 60, seed=0)
    assert told == pytest.approx(true, abs=0.015)
    assert covered >= 0.85


def test_a_spline_predicts_no_0_outside_of_its_scores() -> None:
    lowest, error = outside_error(True, 4, seed=0)
    assert lowest > 0.02
    assert error < 0.25
