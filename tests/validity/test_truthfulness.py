"""The interval of CRAG's score holds the true mean, where a bootstrap does not."""

from __future__ import annotations

import pytest

from simulations.truthfulness import POPULATIONS, coverage, coverage_of_bootstrap

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", POPULATIONS)
def test_intervals_hold_the_true_mean(name: str) -> None:
    assert coverage(POPULATIONS[name], 60, 300, seed=1) >= 0.92


def test_a_bootstrap_would_miss_it_where_nearly_all_answers_are_right() -> None:
    assert coverage_of_bootstrap(POPULATIONS["97 % right, 3 % wrong"], 60, 100, seed=1) < 0.92
