"""Bounds of means of differences: by hand, by Clopper and Pearson, and by drawing weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ragauge.plugins.gate.gating import decide, paired_test
from ragauge.plugins.gate.lower_bounds import bounded_mean_of_few, skewed_mean


@pytest.mark.parametrize(("n", "lost"), [(2, 0), (30, 2), (149, 0), (200, 1), (1000, 9)])
def test_of_topics_that_keep_or_lose_everything_the_bound_is_clopper_and_pearson_s(n: int, lost: int) -> None:
    d = np.r_[-np.ones(lost), np.zeros(n - lost)]
    found = bounded_mean_of_few(d, -0.02, 1.0, 0.05)
    exact = stats.binomtest(lost, n, 0.02, alternative="less")
    assert found.p == pytest.approx(exact.pvalue, abs=1e-7)
    assert found.limit == pytest.approx(-exact.proportion_ci(0.95).high, abs=1e-6)
    for times in (2, 1000):
        less = bounded_mean_of_few(d / times, -0.02 / times, 1 / times, 0.05)
        assert (less.p, less.limit * times) == pytest.approx((found.p, found.limit), abs=1e-6)


def test_of_other_differences_it_is_the_mean_under_random_weights() -> None:
    rng = np.random.default_rng(0)
    d = np.where(rng.random(60) < 0.1, rng.uniform(-0.6, 0.6, 60), 0)
    found = bounded_mean_of_few(d, -0.05, 1.0, 0.05)
    means = rng.dirichlet(np.ones(61), 100_000) @ np.append(d, -1.0)
    assert found.p == pytest.approx((means <= -0.05).mean(), abs=0.005)
    assert found.limit == pytest.approx(np.quantile(means, 0.05), abs=0.001)
    assert bounded_mean_of_few(d, -0.05, 0.01 + np.abs(d).max(), 0.05).p < found.p


def test_a_long_lower_tail_adds_a_topic_and_moves_the_t_test_by_hand() -> None:
    d = np.array([0.1] * 8 + [-0.4, -0.6])
    # The mean is -0.02; the lowest is 0.58 below it, the highest 0.12 above: one topic is added 0.46 below.
    seen = np.array([0.1] * 8 + [-0.4, -0.48, -0.6])
    mean, squares = -0.68 / 11, float(((seen + 0.68 / 11) ** 2).sum())
    skewness = float(((seen - mean) ** 3).sum() / 11 / (squares / 11) ** 1.5)
    skewness *= 1 + 30 / 11  # of eleven topics it is that much too small
    x = (mean + 0.2) / np.sqrt(squares / 10)
    x += skewness * x**2 / 3 + skewness**2 * x**3 / 27 + skewness / 66
    found = skewed_mean(d, -0.2, 0.05)
    assert found.p == pytest.approx(stats.t.sf(x * np.sqrt(11), 10))
    assert found.p > stats.ttest_1samp(d, -0.2, alternative="greater").pvalue
    assert found.spread == pytest.approx(d.std(ddof=1))
    assert skewed_mean(d, found.limit, 0.05).p == pytest.approx(0.05)
    # Of a long upper tail it is the t test.
    plain = stats.ttest_1samp(-d, -0.2, alternative="greater").pvalue
    assert skewed_mean(-d, -0.2, 0.05).p == pytest.approx(plain)


def test_a_tail_that_rounding_alone_makes_leaves_the_limit_of_the_t_test() -> None:
    # Two values in turn have no skewness; of these, floating point has one of -1e-16 on one side.
    d = np.tile([0.25, 0.15], 30)
    width = stats.t.ppf(0.95, 59) * d.std(ddof=1) / np.sqrt(60)
    assert skewed_mean(d, 0.05, 0.05).limit == pytest.approx(0.2 - width, rel=1e-9)
    assert skewed_mean(-d, 0.05, 0.05).limit == pytest.approx(-0.2 - width, rel=1e-9)
    found = paired_test(np.full(60, 0.25), np.tile([0.5, 0.4], 30), 0.05)
    assert (found.lo, found.hi) == pytest.approx((-0.2 - width, -0.2 + width), rel=1e-9)


def test_one_loss_in_200_topics_does_not_pass_a_tolerance_of_two_per_cent() -> None:
    # Where 2 % of the topics lose everything, one of 200 or none does in 8.9 % of the cases.
    base = np.full(200, 0.9)
    lost = base.copy()
    lost[0] = 0.0
    assert decide([paired_test(lost, base, 0.02)]) == ["inconclusive"]
    assert decide([paired_test(base, base, 0.02)]) == ["pass"]
    # With small changes on the other topics, too.
    jitter = np.random.default_rng(0).normal(0, 0.01, 200)
    assert decide([paired_test(lost + jitter, base, 0.02)]) == ["inconclusive"]


def test_where_all_values_are_one_there_is_nothing_to_lose() -> None:
    assert bounded_mean_of_few(np.zeros(5), -0.01, 0.0, 0.05).p == 0
    assert bounded_mean_of_few(np.zeros(5), 0.0, 0.0, 0.05).p == 1
    assert skewed_mean(np.full(5, 0.1), 0.0, 0.05).limit == 0.1
