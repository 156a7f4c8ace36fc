"""Shrunk means against the posterior integrated on a dense grid, and what has to hold whatever the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, betabinom

from ragauge.estimate.shrinkage import shrunk_means


def integrated(right: list[int], n: list[int], ends: np.ndarray, cells: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means [slices] of the model by brute force, and the probability below each of `ends` [2, slices].

    mu in equal cells of (0, 1); rho, whose root is uniform, in cells narrow near 0; every slice's posterior is the
    mixture of beta distributions over all of these cells.
    """
    at = (np.arange(cells) + 0.5) / cells
    mu, rho = at[:, None], at**3
    a, b = mu * (1 / rho - 1), (1 - mu) * (1 / rho - 1)
    log = sum(betabinom.logpmf(k, m, a, b) for k, m in zip(right, n, strict=True)) + np.log(1.5 * at**0.5)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    means = [(weight * (a + k) / (a + b + m)).sum() for k, m in zip(right, n, strict=True)]
    below = [
        [(weight * beta.cdf(end, a + k, b + m - k)).sum() for end, k, m in zip(one, right, n, strict=True)]
        for one in ends
    ]
    return np.array(means), np.array(below)


@pytest.mark.parametrize(
    ("right", "n"),
    [
        ([3, 9, 14], [10, 10, 20]),
        ([15, 12, 8, 10, 14], [15] * 5),
        ([9, 10, 9, 10, 9, 10], [15] * 6),
        ([2, 30], [3, 60]),
    ],
)
def test_means_and_intervals_are_those_of_the_posterior(right: list[int], n: list[int]) -> None:
    sizes = np.array(n)
    found = shrunk_means(np.array(right) / sizes, sizes, sizes)
    means, below = integrated(right, n, found[1:])
    assert found[0] == pytest.approx(means, abs=0.005)
    # Given rho a slice is taken as one beta distribution, which is least exact near the ends of (0, 1).
    upper = np.where(sizes == right, 1.0, 0.975)  # where all are right the interval ends at 1
    assert below == pytest.approx(np.array([np.full(len(n), 0.025), upper]), abs=0.02)


def test_two_slices_of_one_topic_by_hand() -> None:
    # p(yes, no | mu, rho) = mu (1 - mu) says nothing of rho, whose mean stays 1/3; that of mu is 1/2. Given both, the
    # mean of a slice with a yes is (a + 1) / (a + b + 1) = mu (1 - rho) + rho, on average 1/3 + 1/3.
    found = shrunk_means([1.0, 0.0], [1, 1], [1, 1])
    assert found[0] == pytest.approx([2 / 3, 1 / 3], abs=0.01)


def test_more_topics_and_more_spread_shrink_less() -> None:
    few, many = np.full(6, 10), np.full(6, 1000)
    apart, near = np.array([0.2, 0.3, 0.5, 0.6, 0.8, 0.9]), np.array([0.5, 0.5, 0.6, 0.6, 0.5, 0.6])
    moved = [np.abs(shrunk_means(y, n, n)[0] - y).mean() for y, n in ((apart, many), (apart, few))]
    assert moved[0] < 0.002 < moved[1]
    alike = shrunk_means(near, few, few)[0]
    assert np.ptp(alike) < 0.4 * np.ptp(near)
    one = shrunk_means(np.array([0.9, 0.9, 0.1, 0.1]), [5, 500, 500, 5], [5, 500, 500, 5])[0]
    assert 0.9 - one[0] > 10 * abs(0.9 - one[1])


def test_limits_move_with_the_scale() -> None:
    y, n = np.array([0.1, 0.5, 0.7]), np.array([12.0, 20, 40])
    within = shrunk_means(y, n, n)
    signed = shrunk_means(2 * y - 1, n, n, limits=(-1.0, 1.0))
    assert signed == pytest.approx(2 * within - 1)


def test_a_slice_without_a_value_is_left_out_and_one_slice_is_not_shrunk() -> None:
    nan = float("nan")
    found = shrunk_means([0.2, nan, 0.6], [10, 0, 10], [10.0, nan, 10.0])
    assert np.isnan(found[:, 1]).all()
    assert found[:, [0, 2]] == pytest.approx(shrunk_means([0.2, 0.6], [10, 10], [10, 10]))
    assert np.isnan(shrunk_means([0.2], [10], [10])).all()
    assert shrunk_means([], [], []).shape == (3, 0)


@pytest.mark.parametrize("y", [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
def test_ends_of_the_scale_have_intervals_within_it(y: list[float]) -> None:
    mean, lo, hi = shrunk_means(y, [1, 8, 300], [1.0, 8, 300])
    assert (lo >= 0).all()
    assert (hi <= 1).all()
    assert (lo < mean).all()
    assert (mean < hi).all()


def test_few_equal_scores_do_not_pass_for_many_topics() -> None:
    # Two topics of the same score have an effective number of 500; beside slices of 20 topics that spread usually.
    n = np.array([2, 20, 20])
    mean, lo, hi = shrunk_means([0.9, 0.5, 0.52], n, [500.0, 25, 25])
    assert abs(mean[0] - 0.9) > 0.1
    assert hi[0] - lo[0] > 0.3


def test_slices_without_any_spread_stay_where_they_are() -> None:
    found = shrunk_means([0.0, 0.0, 0.0], [15, 15, 4], [np.inf] * 3, (-1.0, 1.0))
    assert np.abs(found).max() < 0.01
    assert (found[1] <= found[0]).all()
    assert (found[0] <= found[2]).all()
