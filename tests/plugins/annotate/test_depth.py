"""What deeper pools would bring, from new evidence at the deepest ranks."""

from __future__ import annotations

import pytest

from ragauge.plugins.annotate.depth import missed


def test_limits_rest_on_the_lower_half_of_the_ranks_and_on_the_seed() -> None:
    found = [missed([[1] * n, [3, 4], [4], [4, 4], []], 4, seed) for n in (1, 50) for seed in range(5)]
    assert [of.by_rank for of in found if of is not None] == [(1, 0, 1, 4)] * 5 + [(50, 0, 1, 4)] * 5
    limits = [(of.lo, of.value, of.hi) for of in found if of is not None]
    assert limits[:5] == limits[5:]
    assert len(set(limits)) > 1
    # Poisson(r x 5 deep ones of a draw): r is 2 without a fall, and .35 where new evidence falls as 1 / rank squared.
    assert all(lo == 0 and 14 <= hi <= 26 for lo, _, hi in limits)
    of_four = (1 / 5 + 1 / 6 + 1 / 7 + 1 / 8) / (1 / 3 + 1 / 4)
    assert [value for _, value, _ in limits] == pytest.approx([5 * of_four] * 10)


def test_an_interval_says_so_where_the_deep_ranks_brought_nothing() -> None:
    found = missed([[1, 1], [2], []], 10)
    assert found is not None
    assert (found.value, found.lo) == (0, 0)
    assert found.hi == pytest.approx(2 * 3.689, abs=0.01)  # Poisson's exact limit of 0, for twice as many ranks
    assert missed([[1]], 1) is None
