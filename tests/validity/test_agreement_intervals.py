"""The interval of a judge's agreement with people holds that of the population."""

from __future__ import annotations

import pytest

from simulations.agreement import kappa_coverage, kappa_of_an_erring_judge, true_kappa

pytestmark = pytest.mark.slow


def test_the_interval_of_kappa_holds_that_of_the_population() -> None:
    assert true_kappa() == pytest.approx((0.84 - 0.284) / (1 - 0.284))
    assert kappa_coverage(120, 3, 150, seed=0) >= 0.9


def test_kappa_of_a_judge_that_rarely_errs() -> None:
    """A bootstrap of labels that hardly differ held it in 32, 51 and 87 % at 20, 40 and 100 labels."""
    for n in (20, 40, 100):
        assert kappa_of_an_erring_judge("80 % right", 0.02, n, 400, seed=0)[0] >= 0.92
