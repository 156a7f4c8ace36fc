"""Systems that are alike rarely differ in some measure where all measures are one family."""

from __future__ import annotations

import pytest

from simulations.families import found

pytestmark = pytest.mark.slow


def test_of_eight_measures_without_a_difference_hardly_any_is_called_one() -> None:
    by_family = found(8, 0.0, 100, seed=0)
    assert by_family["all"][0] <= 0.12
    assert by_family["measure"][0] >= 0.15


def test_a_real_difference_is_still_found_among_eight_measures() -> None:
    by_family = found(8, 0.1, 40, seed=0)
    assert by_family["all"][1] >= 0.9
