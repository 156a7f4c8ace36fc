"""The interval of a funnel's change holds the true change, also where hardly any topic changes."""

from __future__ import annotations

import pytest

from simulations.funnel import CHANGES, ORIGINS, change_coverage, origin_coverage

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("n", [30, 120])
@pytest.mark.parametrize("name", list(CHANGES))
def test_the_interval_of_a_change_holds_the_true_one(name: str, n: int) -> None:
    assert change_coverage(name, n, 400, seed=0) >= 0.91


def test_a_bootstrap_would_miss_rare_losses() -> None:
    """With one topic of a hundred losing, 30 topics mostly show none, and resamples show none either."""
    assert change_coverage("1 % lose", 30, 200, seed=0, bootstrap=True) < 0.5


@pytest.mark.parametrize("name", list(ORIGINS))
def test_the_interval_of_an_origin_of_failures_holds_the_true_share(name: str) -> None:
    assert origin_coverage(name, 100, 200, seed=0) >= 0.9
