"""The interval of a judge's agreement with people holds that of the population."""

from __future__ import annotations

import pytest

from simulations.agreement import kappa_coverage, true_kappa

pytestmark = pytest.mark.slow


def test_the_interval_of_kappa_holds_that_of_the_population() -> None:
    assert true_kappa() == pytest.approx((0.84 - 0.284) / (1 - 0.284))
    assert kappa_coverage(120, 3, 150, seed=0) >= 0.9
