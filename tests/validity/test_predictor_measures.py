"""What cross-validation says of a score that says nothing, and what its intervals hold."""

from __future__ import annotations

import pytest

from simulations.predictor import log_loss_coverage, mean_auc

pytestmark = pytest.mark.slow


def test_a_useless_score_has_an_auc_of_one_half() -> None:
    assert mean_auc(30, True, 40, seed=0) == pytest.approx(0.5, abs=0.07)


def test_a_score_that_says_something_keeps_its_auc() -> None:
    assert mean_auc(60, False, 5, seed=0) > 0.7


def test_the_interval_of_the_log_loss_holds_that_of_its_own_fits() -> None:
    assert log_loss_coverage(120, 15, seed=0)[0] >= 0.7
