"""Averages over slices and shrunk slices hold the truth; slices in which nothing differs are rarely told apart."""

from __future__ import annotations

import pytest

from simulations.slices import coverage, differences_found, shrinkage

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("population", ["slices of different sizes", "shares of 0.02 to 0.99"])
def test_intervals_hold_the_average_over_slices(population: str) -> None:
    assert min(coverage(population, 60, seed=0).values()) >= 0.86


def test_of_many_slices_without_a_difference_hardly_any_is_called_one() -> None:
    assert differences_found(8, 30, seed=0) <= 0.17


@pytest.mark.parametrize("spread", [0.0, 0.05, 0.15])
@pytest.mark.parametrize("equal", [True, False])
def test_shrunk_slices_err_less_and_their_intervals_hold_on_average(equal: bool, spread: float) -> None:
    found = shrinkage("right", 20, equal, 0.65, spread, 100, seed=0)
    alone, shrunk = found.error
    assert shrunk < (0.6 if spread < 0.1 else 0.95) * alone
    assert found.held[1] > 92.5
    assert found.width[1] < found.width[0]
    assert abs(found.worst[1]) < abs(found.worst[0]) / 2
