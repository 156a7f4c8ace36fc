from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from ragauge.estimate import bootstrap_mean, topic_bootstrap
from ragauge.estimate.intervals import bootstrap_means, mean_replicates, percentile_interval, topic_weights


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


def test_columns_at_once_agree_with_one_at_a_time():
    table = pd.DataFrame(
        {"a": [0.1, 0.4, 0.6, 0.9], "b": [1.0, 0.0, np.nan, 1.0], "c": [np.nan, np.nan, 2.0, np.nan]}
    )
    means = bootstrap_means(table, n_boot=200)
    assert means["a"] == bootstrap_mean(table["a"], n_boot=200)
    assert (means["b"].value, means["b"].n) == (pytest.approx(2 / 3), 3)
    assert 0 <= means["b"].lo < 2 / 3 < means["b"].hi == 1
    assert (means["c"].value, means["c"].n) == (2.0, 1)
    assert math.isnan(means["c"].lo)
    assert math.isnan(bootstrap_means(table.head(0))["a"].value)


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


def test_any_statistic_agrees_with_the_fast_mean():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"qid": rng.integers(0, 30, 120).astype(str), "x": rng.random(120)})
    slow = topic_bootstrap(frame, lambda part: part["x"].mean(), n_boot=300, seed=5)
    fast = bootstrap_mean(frame["x"], frame["qid"], n_boot=300, seed=5)
    assert (slow.value, slow.lo, slow.hi) == pytest.approx((fast.value, fast.lo, fast.hi))
    assert slow.n == fast.n == 30


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
