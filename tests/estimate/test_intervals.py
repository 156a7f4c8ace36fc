from __future__ import annotations

import math

import numpy as np
import pytest

from ragauge.contract.errors import DataError
from ragauge.estimate import bootstrap_mean, bounded_mean
from ragauge.estimate.intervals import (
    effective_topics,
    mean_replicates,
    paired_mean,
    paired_means,
    percentile_interval,
    topic_weights,
    wilson_interval,
)


def test_every_resample_draws_as_many_topics_as_there_are():
    weights = np.vstack(list(topic_weights(7, 50, seed=1)))
    assert weights.shape == (50, 7)
    assert (weights.sum(axis=1) == 7).all()
    assert weights.min() == 0


def test_resamples_do_not_depend_on_the_block():
    narrow = np.vstack(list(topic_weights(5, 20, seed=2)))
    wide = np.vstack(list(topic_weights(5, 20, seed=2, width=1_500_000)))
    assert (narrow == wide).all()


def test_percentile_interval_by_hand():
    assert percentile_interval(np.arange(101.0), 0.9) == pytest.approx((5, 95))
    assert percentile_interval(np.array([1.0, np.nan, 1.0])) == (1.0, 1.0)
    assert all(math.isnan(x) for x in percentile_interval(np.array([np.nan])))


def test_replicates_are_means_over_the_drawn_rows():
    values, topics = np.array([1.0, 2.0, 4.0, 8.0]), np.array([0, 1, 1, 2])
    got = mean_replicates(np.array([[1.0], [6.0], [8.0]]), np.array([[1.0], [2.0], [1.0]]), n_boot=6, seed=3)
    (weights,) = topic_weights(3, 6, seed=3)
    twin = [np.mean(np.repeat(values, w[topics])) for w in weights]
    assert got[:, 0] == pytest.approx(twin)


def test_a_paired_mean_by_hand():
    # 2 of 4 topics differ by 0.5; a quarter of a topic more at each end and half a topic at 0: 1 / 5, and of
    # the squares 2 * 0.3^2 + 2 * 0.2^2 + 0.5 + 0.2^2 = 0.8; Student's 3.182446 at 3 degrees of freedom
    reach = 3.182446 * math.sqrt(0.8) / 5
    found = paired_mean(np.array([0.5, np.nan, 0.0, 0.5, 0.0]))
    assert (found.value, found.lo, found.hi, found.n) == pytest.approx((0.25, 0.2 - reach, 0.2 + reach, 4), abs=1e-6)
    # Values of twice the reach have an interval of twice the width.
    twice = paired_mean(np.array([1.0, 0.0, 1.0, 0.0]), reach=2.0)
    assert (twice.lo, twice.hi) == pytest.approx((2 * found.lo, 2 * found.hi))
    assert paired_means(np.array([[0.5, 0.1], [0.0, np.nan]]))[1].n == 1
    assert math.isnan(paired_mean(np.array([0.1])).lo)
    assert math.isnan(paired_mean(np.array([])).value)
    of_level = paired_mean(np.array([0.5, 0.0, 0.5, 0.0]), level=0.8)
    assert of_level.hi == pytest.approx(0.2 + 1.637744 * math.sqrt(0.8) / 5)


def test_equal_systems_on_few_topics_may_differ_on_others():
    found = paired_mean(np.zeros(30))
    assert found.value == 0
    assert found.hi == -found.lo == pytest.approx(2.045230 * math.sqrt(0.5) / 31)


def test_mean_of_all_rows_and_its_interval():
    values = np.random.default_rng(0).normal(10, 2, 400)
    estimate = bootstrap_mean(values, n_boot=2000)
    assert estimate.value == pytest.approx(values.mean())
    reach = 1.96 * values.std() / 20
    assert estimate.lo == pytest.approx(values.mean() - reach, abs=0.03)
    assert estimate.hi == pytest.approx(values.mean() + reach, abs=0.03)
    assert (estimate.n, estimate.level) == (400, 0.95)
    assert bootstrap_mean(values, n_boot=2000) == estimate


def test_few_topics():
    assert math.isnan(bootstrap_mean([]).value)
    one = bootstrap_mean([1.0, 2.0], topics=["a", "a"])
    assert one.value == 1.5
    assert math.isnan(one.lo)
    assert bootstrap_mean([3.0, 3.0]).lo == 3.0


def test_the_mean_of_resampled_topics_agrees_with_that_of_their_rows():
    rng = np.random.default_rng(1)
    topics, x = rng.integers(0, 30, 120), rng.random(120)
    rows = [np.flatnonzero(topics == topic) for topic in range(30)]
    (weights,) = topic_weights(30, 300, seed=5)
    slow = [x[np.concatenate([rows[t] for t in np.repeat(np.arange(30), w)])].mean() for w in weights]
    fast = bootstrap_mean(x, topics, n_boot=300, seed=5)
    assert (fast.lo, fast.hi, fast.n) == pytest.approx((*percentile_interval(np.array(slow)), 30))


def test_resampling_topics_covers_and_resampling_rows_does_not():
    """Five retrievers on 80 topics whose difficulty they share: 95 % intervals of the mean score."""
    rng = np.random.default_rng(7)
    trials, n_topics, n_systems = 400, 80, 5
    by_topic = by_row = 0
    topics = np.repeat(np.arange(n_topics), n_systems)
    for trial in range(trials):
        scores = np.repeat(rng.normal(0, 1, n_topics), n_systems) + rng.normal(0, 1, n_topics * n_systems)
        ours = bootstrap_mean(scores, topics, n_boot=200, seed=trial)
        rows = bootstrap_mean(scores, n_boot=200, seed=trial)
        by_topic += ours.lo <= 0 <= ours.hi
        by_row += rows.lo <= 0 <= rows.hi
    assert 0.92 <= by_topic / trials <= 0.97
    assert by_row / trials < 0.85


def test_shares_of_one_row_a_topic_have_the_interval_of_wilson_as_statsmodels_computes_it():
    from statsmodels.stats.proportion import proportion_confint

    for hits, n in ((0, 30), (4, 30), (15, 30), (30, 30), (6, 7404)):
        ours = bounded_mean(np.arange(n) < hits)
        assert (ours.lo, ours.hi) == pytest.approx(proportion_confint(hits, n, method="wilson"), abs=1e-12)
    # With one to three hits the lower limit is the Poisson one: -log(0.95) for one hit.
    assert wilson_interval(1 / 30, 30)[0] == pytest.approx(-math.log(0.95) / 30)
    assert wilson_interval(29 / 30, 30)[1] == pytest.approx(1 + math.log(0.95) / 30)


def test_topics_of_several_rows_count_as_one_to_all_of_their_rows():
    alike, rows = np.repeat([0.0, 5.0], 20), np.full(40, 5.0)
    assert effective_topics(alike, rows) == pytest.approx(40)  # five equal rows tell as much as one
    same = bounded_mean(np.repeat([0.0, 1.0], 100), np.repeat(np.arange(40), 5))
    assert (same.lo, same.hi) == pytest.approx(wilson_interval(0.5, 40))
    # Independent rows: nearly 200 topics of one row each
    drawn = np.random.default_rng(0).binomial(5, 0.5, 4000).astype(float)
    assert effective_topics(drawn, np.full(4000, 5.0)) == pytest.approx(5 * 4000, rel=0.05)
    # The order of rows does not matter, nor how often all of them are written down.
    values, topics = np.array([0.0, 1.0, 1.0, 0.25, 0.5]), np.array(["a", "b", "b", "c", "a"])
    once = bounded_mean(values, topics)
    twice = bounded_mean(np.tile(values, 2)[::-1], np.tile(topics, 2)[::-1])
    assert (twice.lo, twice.hi) == pytest.approx((once.lo, once.hi))


def test_a_mean_whose_values_are_all_equal_has_a_width():
    assert (bounded_mean(np.ones(30)).lo, bounded_mean(np.ones(30)).hi) == pytest.approx((30 / (30 + 1.959964**2), 1))
    half = bounded_mean(np.full(30, 0.5))
    assert half.lo < 0.5 < half.hi


def test_a_bounded_mean_needs_two_topics_and_values_of_0_to_1():
    assert math.isnan(bounded_mean([]).value)
    assert bounded_mean([0.2, 0.4], ["a", "a"]).value == pytest.approx(0.3)
    assert math.isnan(bounded_mean([0.2, 0.4], ["a", "a"]).lo)
    with pytest.raises(DataError, match=r"value 1 is 1\.5"):
        bounded_mean([0.5, 1.5])
    with pytest.raises(DataError, match="value 0 is nan"):
        bounded_mean([float("nan"), 0.5])
