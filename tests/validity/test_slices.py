"""Averages over slices hold the true ones; slices in which nothing differs are rarely called different."""

from __future__ import annotations

import pytest

from simulations.slices import coverage, differences_found

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("population", ["slices of different sizes", "shares of 0.02 to 0.99"])
def test_intervals_hold_the_average_over_slices(population: str) -> None:
    assert min(coverage(population, 60, seed=0).values()) >= 0.86


def test_of_many_slices_without_a_difference_hardly_any_is_called_one() -> None:
    assert differences_found(8, 30, seed=0) <= 0.17
