"""Intervals of shares and of scores hold the truth as often as they say."""

from __future__ import annotations

import pytest

from ragauge.estimate import bounded_mean
from ragauge.estimate.intervals import paired_mean, paired_share_interval
from simulations.shares import (
    DENSE,
    RARE,
    SCORES,
    binomial_coverage,
    clustered_coverage,
    dense_coverage,
    difference_coverage,
    rare_coverage,
    score_coverage,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("n", [10, 30, 120])
def test_shares_of_one_row_a_topic_by_enumeration(n: int) -> None:
    covered = binomial_coverage(bounded_mean, n)
    assert 0.94 <= covered.mean() <= 0.97
    assert covered.min() >= 0.91


def test_shares_of_topics_with_five_rows() -> None:
    for share, correlation in ((0.05, 0.0), (0.05, 0.3), (0.3, 0.3), (0.3, 0.8)):
        assert clustered_coverage(bounded_mean, share, correlation, 40, 5, 500, seed=0) >= 0.92


@pytest.mark.parametrize("name", SCORES)
def test_mean_scores(name: str) -> None:
    assert score_coverage(bounded_mean, name, 30, 500, seed=0) >= 0.92


@pytest.mark.parametrize("n", [30, 120, 500])
def test_differences_of_scores_of_which_few_differ_by_enumeration(n: int) -> None:
    for name in RARE:
        assert rare_coverage(paired_mean, name, n) >= 0.9, name


@pytest.mark.parametrize("n", [30, 120, 500])
def test_differences_of_scores_of_most_topics(n: int) -> None:
    for name in DENSE:
        assert dense_coverage(paired_mean, name, n, 500, seed=0) >= 0.91, name


def test_paired_differences_of_shares_by_enumeration() -> None:
    for won, lost in ((0.02, 0.02), (0.1, 0.05), (0.3, 0.1), (0.05, 0.0)):
        assert difference_coverage(paired_share_interval, won, lost, 30) >= 0.92
