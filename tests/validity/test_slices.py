"""Averages over slices hold the true ones; slices in which nothing differs are rarely called different."""

from __future__ import annotations

import pytest

from simulations.slices import EVEN, EXTREME, UNEVEN, WEIGHTED, Slices, coverage, differences_found

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "slices", [EVEN, UNEVEN, EXTREME, WEIGHTED], ids=["even", "uneven", "ends", "weighted"]
)
@pytest.mark.parametrize("measure", ["ir_score", "correct_share"])
def test_intervals_hold_the_average_over_slices(slices: Slices, measure: str) -> None:
    assert coverage(slices, measure, 80, seed=0) >= 0.88


def test_of_many_slices_without_a_difference_hardly_any_is_called_one() -> None:
    assert differences_found(8, 40, seed=0) <= 0.15
