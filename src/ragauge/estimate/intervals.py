"""Intervals over topics: the topic, not the row, is the unit.

Shares and means of scores in [0, 1] have Wilson's interval at an effective number of topics (`bounded_mean`),
since a bootstrap of them covers too little near 0 and 1 and has no width where all values are equal. Paired
differences have Wald's after topics were added, for the same reason (`paired_mean`). Other statistics
have a percentile interval over resampled topics (Efron 1979; Efron & Tibshirani 1993, ch. 13): all rows of a
drawn topic come along, so that five retrievers on one topic do not pass for five observations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.estimate.outcomes import topic_codes

LEVEL = 0.95
_BLOCK = 4_000_000  # elements of one block of replicates: bounds the memory
_UNSEEN = 0.25  # topics at 0, and as many at 1, that `effective_topics` adds to those that were seen
_ADDED_SHARES, _ADDED_SCORES = 2.0, 1.0  # topics that the intervals of paired differences add
_FEW = 3  # hits up to which Wilson's limit gives way to the Poisson one


@dataclass(frozen=True)
class Estimate:
    """A number with its interval at `level`, from `n` topics; lo and hi are NaN where there is none."""

    value: float
    lo: float
    hi: float
    n: int
    level: float = LEVEL


def wilson_interval(share: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's interval of a share in [0, 1] seen in n draws; n need not be whole.

    With at most three hits (or misses) the limit on the side of 0 (or 1) is the one-sided Poisson limit where
    that is further out, without which the interval covers 84 % there (Wilson 1927; Brown, Cai & DasGupta
    2001, section 4.1). At a share of 0 or 1 that limit is 0 or 1, and the other one still has a distance.
    """
    from scipy.stats import chi2, norm

    if not n > 0:
        return float("nan"), float("nan")
    z2 = float(norm.isf((1 - level) / 2)) ** 2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2))) / (1 + z2 / n)

    def outer(hits: float) -> float:
        """How far from its end of [0, 1] the limit may lie with so few hits."""
        return float(chi2.ppf(1 - level, 2 * hits)) / 2 / n if hits > 0 else 0.0

    lo, hi = middle - reach, middle + reach
    if share <= 0.5 and share * n <= _FEW:
        lo = min(lo, outer(share * n))
    if share >= 0.5 and (1 - share) * n <= _FEW:
        hi = max(hi, 1 - outer((1 - share) * n))
    return max(lo, 0.0), min(hi, 1.0)


def effective_topics(sums: np.ndarray, rows: np.ndarray, moves: np.ndarray | None = None) -> float:
    """How many topics with one yes-or-no value each tell as much of the mean as these topics do.

    `sums` and `rows`, float [topics], are the sum of a topic's values in [0, 1] and how many there are. The
    result is p(1 - p) over the variance of the ratio mean p = sums / rows, which is linearised over topics:
    the number of topics for one yes or no each, more where a topic has several that differ (Kish 1965,
    section 8.2) and where values lie between 0 and 1. A quarter of a topic at 0 and another at 1 count as
    seen in p and its variance, as few values near an end do not show how far the unseen ones spread. `moves`
    [topics] are what each topic adds to a statistic with the same mean, whose variance then counts.
    """
    n, size = len(sums), rows.mean()
    p = (sums.sum() + _UNSEEN * size) / (rows.sum() + 2 * _UNSEEN * size)
    unseen = _UNSEEN * size**2 * (p**2 + (1 - p) ** 2)
    squares = float((((sums if moves is None else moves) - p * rows) ** 2).sum()) + unseen
    return float(n * p * (1 - p) * (n + 2 * _UNSEEN) * size**2 / squares)


def bounded_mean(
    values: np.ndarray | pd.Series,
    topics: np.ndarray | pd.Series | None = None,
    level: float = LEVEL,
) -> Estimate:
    """The mean of values in [0, 1] (yes or no, scores, probabilities) with an interval over topics.

    The interval is Wilson's at the effective number of topics; for one yes or no a topic that is Wilson's
    interval itself. `topics` names the topic of every row; without it every row is a topic of its own. With
    fewer than two topics lo and hi are NaN; without rows the value is NaN, too. Raises DataError for a value
    outside [0, 1].
    """
    x = np.asarray(values, dtype=float)
    outside = ~((x >= -1e-9) & (x <= 1 + 1e-9))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise DataError(f"value {row} is {x[row]}; a mean of shares or scores takes numbers in [0, 1]")
    x = np.clip(x, 0, 1)
    codes, n = (np.arange(len(x)), len(x)) if topics is None else topic_codes(topics)
    value = min(float(x.mean()), 1.0) if n else float("nan")
    if n < 2:
        return Estimate(value, float("nan"), float("nan"), n, level)
    sums, rows = np.bincount(codes, x, minlength=n), np.bincount(codes, minlength=n).astype(float)
    lo, hi = wilson_interval(value, effective_topics(sums, rows), level)
    return Estimate(value, min(lo, value), max(hi, value), n, level)


def paired_share_interval(
    differences: np.ndarray,
    topics: np.ndarray | pd.Series | None = None,
    level: float = LEVEL,
    weights: np.ndarray | None = None,
) -> Estimate:
    """The mean of paired differences 1, 0 or -1 of yes-or-no values, with an interval over topics.

    Wald's interval after half a topic was added to each of the four cells of the paired table (Agresti & Min
    2005), so that it has a width where no row differs; with several rows a topic the variance is that of the
    ratio mean over topics. `topics` names the topic of every row; without it every row is a topic of its own.
    `weights` say how many rows each row stands for (see `weights_of`). NaN limits for fewer than two topics.
    """
    from scipy.stats import norm

    codes, n = (np.arange(len(differences)), len(differences)) if topics is None else topic_codes(topics)
    weights = np.ones(len(differences)) if weights is None else weights
    sums, rows = (np.bincount(codes, x, minlength=n) for x in (weights * differences, weights))
    return _paired(sums, rows, _ADDED_SHARES, float(norm.isf((1 - level) / 2)), 1.0, level)


def paired_mean(differences: np.ndarray, level: float = LEVEL, reach: float = 1.0) -> Estimate:
    """The mean of paired differences of scores, float [topics] in [-reach, reach], with an interval over topics.

    NaN where a topic lacks a value; n counts the others. Student's interval after one topic was added: a
    quarter of it differs by -reach, a quarter by reach, half of it by nothing. Where few topics of a sample
    differ, or none, the sample does not show how much others may (docs/method.md). NaN limits for fewer than
    two topics.
    """
    from scipy.stats import t

    known = differences[~np.isnan(differences)]
    critical = float(t.isf((1 - level) / 2, len(known) - 1)) if len(known) > 1 else float("nan")
    return _paired(known, np.ones(len(known)), _ADDED_SCORES, critical, reach, level)


def paired_means(differences: np.ndarray, level: float = LEVEL, reach: float = 1.0) -> list[Estimate]:
    """`paired_mean` of every column of [topics, pairs]."""
    return [paired_mean(column, level, reach) for column in differences.T]


def _paired(sums: np.ndarray, rows: np.ndarray, added: float, critical: float, reach: float, level: float) -> Estimate:
    """The ratio mean of sums [topics] over rows [topics], with Wald's interval after topics were added.

    A quarter of the `added` topics differs by -reach, a quarter by reach; the others differ by nothing.
    """
    n = len(sums)
    value = float(sums.sum() / rows.sum()) if n else float("nan")
    if n < 2:
        return Estimate(value, float("nan"), float("nan"), n, level)
    size = rows.mean()
    total = rows.sum() + added * size
    middle = sums.sum() / total
    unseen = size**2 * added * (reach**2 / 2 + middle**2)
    width = critical * math.sqrt(((sums - middle * rows) ** 2).sum() + unseen) / total
    lo, hi = max(float(middle - width), -reach), min(float(middle + width), reach)
    return Estimate(value, min(lo, value), max(hi, value), n, level)


def topic_weights(n_topics: int, n_boot: int, seed: int, width: int = 1) -> Iterator[np.ndarray]:
    """Yields int32 [replicates, n_topics] blocks, n_boot rows in all: how often each topic was drawn.

    Each row sums to n_topics. The rows depend on the seed alone, not on `width`, the elements per replicate
    that the caller builds from a block (it sets the height of a block, so that the memory stays bounded).
    """
    rng = np.random.default_rng(seed)
    height = max(1, _BLOCK // max(n_topics, width, 1))
    for start in range(0, n_boot, height):
        rows = min(height, n_boot - start)
        drawn = rng.integers(n_topics, size=(rows, n_topics))
        drawn += np.arange(rows)[:, None] * n_topics
        yield np.bincount(drawn.ravel(), minlength=rows * n_topics).reshape(rows, n_topics).astype(np.int32)


def percentile_interval(replicates: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """The central `level` of the replicates; those that are NaN (undefined in a resample) are left out."""
    known = replicates[~np.isnan(replicates)]
    if not len(known):
        return float("nan"), float("nan")
    lo, hi = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(lo), float(hi)


def mean_replicates(sums: np.ndarray, rows: np.ndarray, n_boot: int = 1000, seed: int = 0) -> np.ndarray:
    """float64 [n_boot, columns]: means over all rows in resamples of topics; NaN where none was drawn.

    Of each topic a resample only needs the sum and the number of rows: `sums` and `rows` are [topics,
    columns].
    """
    blocks = [np.empty((0, sums.shape[1]))]
    for drawn in topic_weights(len(sums), n_boot, seed):
        weights = drawn.astype(float)
        total, n = weights @ sums, weights @ rows
        blocks.append(np.divide(total, n, out=np.full_like(total, np.nan), where=n > 0))
    return np.vstack(blocks)


def bootstrap_mean(
    values: np.ndarray | pd.Series,
    topics: np.ndarray | pd.Series | None = None,
    n_boot: int = 1000,
    seed: int = 0,
    level: float = LEVEL,
    weights: np.ndarray | None = None,
) -> Estimate:
    """The mean of all rows with its percentile interval over topics.

    `topics` names the topic of every row; without it every row is a topic of its own. `weights` say how many
    rows each row stands for (see `weights_of`). With fewer than two topics lo and hi are NaN; without rows
    the value is NaN, too.
    """
    x = np.asarray(values, dtype=float)
    codes, n = (np.arange(len(x)), len(x)) if topics is None else topic_codes(topics)
    value = float(np.average(x, weights=weights)) if n else float("nan")
    if n < 2:
        return Estimate(value, float("nan"), float("nan"), n, level)
    w = np.ones(len(x)) if weights is None else weights
    sums, rows = np.bincount(codes, w * x, minlength=n), np.bincount(codes, w, minlength=n)
    replicates = mean_replicates(sums[:, None], rows[:, None], n_boot, seed)
    return Estimate(value, *percentile_interval(replicates[:, 0], level), n, level)


def topic_bootstrap(
    frame: pd.DataFrame,
    statistic: Callable[[pd.DataFrame], float],
    n_boot: int = 1000,
    seed: int = 0,
    level: float = LEVEL,
) -> Estimate:
    """`statistic(frame)` with its percentile interval over topics, for any statistic of a frame with `qid`.

    The statistic is called n_boot + 1 times; a topic that was drawn twice has its rows twice. Means are
    faster by `bootstrap_mean`.
    """
    codes, n = topic_codes(frame["qid"])
    value = float(statistic(frame))
    if n < 2:
        return Estimate(value, float("nan"), float("nan"), n, level)
    order = np.argsort(codes, kind="stable")
    rows_of = np.split(order, np.cumsum(np.bincount(codes, minlength=n))[:-1])
    replicates = [
        float(statistic(frame.take(np.concatenate([rows_of[t] for t in np.repeat(np.arange(n), weights)]))))
        for block in topic_weights(n, n_boot, seed)
        for weights in block
    ]
    return Estimate(value, *percentile_interval(np.array(replicates), level), n, level)
