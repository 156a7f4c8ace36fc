"""The interval of a funnel's change holds the true change, also where hardly any topic changes."""

from __future__ import annotations

import pytest

from simulations.funnel import CHANGES, change_coverage

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("n", [30, 120])
@pytest.mark.parametrize("name", list(CHANGES))
def test_the_interval_of_a_change_holds_the_true_one(name: str, n: int) -> None:
    assert change_coverage(name, n, 400, seed=0) >= 0.91


def test_a_bootstrap_would_miss_rare_losses() -> None:
    """With one topic of a hundred losing, 30 topics mostly show none, and resamples show none either."""
    assert change_coverage("1 % lose", 30, 200, seed=0, bootstrap=True) < 0.5
