"""What deeper pools would bring, from new evidence at the deepest ranks."""

from __future__ import annotations

import pytest

from ragauge.plugins.annotate.depth import missed, ratio


def test_the_next_ranks_bring_what_the_tail_says_by_its_slope() -> None:
    assert ratio(4, 0) == pytest.approx(4 / 2)
    assert ratio(4, 1) == pytest.approx((1 / 5 + 1 / 6 + 1 / 7 + 1 / 8) / (1 / 3 + 1 / 4))
    assert ratio(4, 2) == pytest.approx((1 / 25 + 1 / 36 + 1 / 49 + 1 / 64) / (1 / 9 + 1 / 16))


def test_the_estimate_rests_on_the_lower_half_of_the_ranks_alone() -> None:
    few, many = (missed([[1] * n, [3, 4], [4], []], 4) for n in (1, 50))
    assert few is not None
    assert many is not None
    assert few.by_rank == (1, 0, 1, 2)
    assert few.value == many.value == pytest.approx(3 * ratio(4, 1))
    assert few.lo < few.value < few.hi
    assert few.share == pytest.approx(few.value / (4 + few.value))


def test_an_interval_says_so_where_the_deep_ranks_brought_nothing() -> None:
    found = missed([[1, 1], [2], []], 10)
    assert found is not None
    assert (found.value, found.lo) == (0, 0)
    assert found.hi == pytest.approx(2 * 3.689, abs=0.01)  # Poisson's exact limit of 0, for twice as many ranks
    assert missed([[1]], 1) is None
