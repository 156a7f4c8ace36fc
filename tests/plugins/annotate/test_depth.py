"""What deeper pools would bring, from new evidence by rank."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln

from ragauge.plugins.annotate.depth import extrapolated, missed


def test_where_every_rank_brings_the_same_the_next_ranks_do_too() -> None:
    assert extrapolated(np.array([7, 7, 7, 7]), 4) == pytest.approx(28)
    assert extrapolated(np.array([1, 2, 3, 4]), 4) == pytest.approx(10)  # it does not rise beyond


def test_where_only_the_first_rank_brought_something_the_next_bring_next_to_nothing() -> None:
    assert extrapolated(np.array([50, 0, 0, 0]), 4) < 1e-9
    assert extrapolated(np.zeros(4, dtype=int), 4) == 0


def test_the_curve_is_the_one_of_maximum_likelihood() -> None:
    new = np.array([40, 17, 12, 6, 6, 3, 4, 1])
    ranks = np.arange(1, 9)

    def loss(x: np.ndarray) -> float:
        mean = np.exp(x[0] + x[1] * np.log(ranks))
        return float((mean - new * np.log(mean) + gammaln(new + 1)).sum())

    a, b = minimize(loss, [3.0, -1.0], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12}).x
    assert extrapolated(new, 8) == pytest.approx(np.exp(a + b * np.log(np.arange(9, 17))).sum(), rel=1e-5)


def test_an_interval_says_so_where_the_deep_ranks_brought_nothing() -> None:
    found = missed([[1, 1], [2], []], 10)
    assert found is not None
    assert found.by_rank == (2, 1, 0, 0, 0, 0, 0, 0, 0, 0)
    assert 0 <= found.lo <= found.value < 1
    assert found.hi == pytest.approx(2 * 3.689, abs=0.01)  # Poisson's exact limit of 0, for twice as many ranks
    assert found.share == pytest.approx(found.value / (3 + found.value))
    assert missed([[1]], 1) is None
