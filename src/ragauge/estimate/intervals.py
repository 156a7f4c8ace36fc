"""Intervals over topics: the unit is the topic, not the row.

Shares and means of scores in [0, 1] have Wilson's interval at an effective number of topics (`bounded_mean`). A
bootstrap of them covers too little near 0 and 1 and has no width where all values are equal. Paired differences have
Wald's after topics were added, for the same reason (`paired_mean`). Other statistics have a percentile interval over
resampled topics (Efron 1979; Efron & Tibshirani 1993, ch. 13): all rows of a drawn topic come along, so that five
retrievers on one topic do not pass for five observations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.estimate.outcomes import by_cluster, topic_codes, units_of

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

    With at most three hits (or misses) Wilson's limit on the side of 0 (or 1) would cover 84 %. There the one-sided
    Poisson limit replaces it where that is further out (Wilson 1927; Brown, Cai & DasGupta 2001, section 4.1). At a
    share of 0 or 1 that limit is 0 or 1, and the other one still has a distance.
    """
    from scipy.special import gammaincinv, ndtri  # the same functions of scipy.stats take half a second to import

    if not n > 0:
        return float("nan"), float("nan")
    z2 = float(ndtri((1 - level) / 2)) ** 2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2))) / (1 + z2 / n)

    def outer(hits: float) -> float:
        """The distance of the limit from its end of [0, 1] with few hits."""
        return float(gammaincinv(hits, 1 - level)) / n if hits > 0 else 0.0

    lo, hi = middle - reach, middle + reach
    if share <= 0.5 and share * n <= _FEW:
        lo = min(lo, outer(share * n))
    if share >= 0.5 and (1 - share) * n <= _FEW:
        hi = max(hi, 1 - outer((1 - share) * n))
    return max(lo, 0.0), min(hi, 1.0)


def effective_topics(
    sums: np.ndarray,
    rows: np.ndarray,
    moves: np.ndarray | None = None,
    n_topics: int | None = None,
    level: float | None = None,
) -> float:
    """The effective number of topics: single yes-or-no values that determine the mean as precisely.

    `sums` and `rows`, float [topics], are the sum of a topic's values in [0, 1] and how many there are. The result is
    p(1 - p) over the variance of the ratio mean p = sums / rows, linearised over topics. It is the number of topics for
    one yes or no each, more where a topic has several that differ (Kish 1965, section 8.2) and where values lie between
    0 and 1. p and its variance count a quarter of a topic at 0 and another at 1 as seen, since few values near an end
    do not show how far the unseen ones spread. `moves` [topics] are what each topic adds to a statistic with the same
    mean, whose variance then counts.

    For clusters (`sums`, `rows` of each) of `n_topics` topics the residuals are those of `without_own_part`. With a
    `level` the number is less by the square of the normal quantile over Student's (`student_of`), as few clusters do
    not tell their variance (Korn & Graubard 1998).
    """
    n, size = len(sums), rows.mean()
    seen = _unseen_size(rows, n_topics)
    p = (sums.sum() + _UNSEEN * seen) / (rows.sum() + 2 * _UNSEEN * seen)
    unseen = _UNSEEN * seen**2 * (p**2 + (1 - p) ** 2)
    squares = (
        float((without_own_part((sums if moves is None else moves) - p * rows, rows, n_topics) ** 2).sum()) + unseen
    )
    found = float(n * p * (1 - p) * (n + 2 * _UNSEEN * seen / size) * size**2 / squares)
    if level is None or not are_clusters(rows, n_topics):
        return found
    return found * (_normal(level) / student_of(rows, n_topics, level)) ** 2


def are_clusters(rows: np.ndarray, n_topics: int | None) -> bool:
    """Whether these sums over `rows` are of clusters of several topics."""
    return n_topics is not None and n_topics > len(rows)


def student_of(rows: np.ndarray, n_topics: int | None, level: float) -> float:
    """The two-sided quantile for means over clusters with these `rows`: Student's, or the normal one of topics.

    Its degrees of freedom are the effective number of clusters, (sum of rows)^2 over the sum of their squares, less
    one: few large clusters determine the variance (Carter, Schnepel & Steigerwald 2017).
    """
    from scipy.special import stdtrit

    if not are_clusters(rows, n_topics):
        return _normal(level)
    return -float(stdtrit(max(rows.sum() ** 2 / (rows**2).sum() - 1, 1), (1 - level) / 2))


def _normal(level: float) -> float:
    from scipy.special import ndtri

    return -float(ndtri((1 - level) / 2))


def without_own_part(residuals: np.ndarray, rows: np.ndarray, n_topics: int | None) -> np.ndarray:
    """Cluster residuals without each cluster's part in the mean (CR3: Bell & McCaffrey 2002); topics' unchanged."""
    if not are_clusters(rows, n_topics):
        return residuals
    return np.asarray(residuals / (1 - rows / rows.sum()) * math.sqrt(1 - 1 / len(rows)))


def _unseen_size(rows: np.ndarray, n_topics: int | None) -> float:
    """The rows of an added topic: the mean; for clusters divided by the root of their mean number of topics.

    Topics of a cluster differ more than rows of one topic; the root was chosen by simulation (docs/method.md).
    """
    return float(rows.mean()) / math.sqrt(max((n_topics or 0) / len(rows), 1.0))


def cluster_variance(added: np.ndarray, clusters: np.ndarray | None) -> np.ndarray:
    """Variance of sums of the topics' contributions [topics, columns], by clusters, float64 [columns]."""
    rows = by_cluster(np.ones((len(added), 1)), clusters)
    return np.asarray((without_own_part(by_cluster(added, clusters), rows, len(added)) ** 2).sum(axis=0))


def units_among(
    n_rows: int, topics: np.ndarray | pd.Series | None, clusters: np.ndarray | pd.Series | None
) -> tuple[np.ndarray, int, int]:
    """Number of each row's cluster (or topic, without clusters), int64 [rows], of these, and of topics."""
    codes, n_topics = (np.arange(n_rows), n_rows) if topics is None else topic_codes(topics)
    return (codes, n_topics, n_topics) if clusters is None else (*topic_codes(clusters), n_topics)


def bounded_mean(
    values: np.ndarray | pd.Series,
    topics: np.ndarray | pd.Series | None = None,
    level: float = LEVEL,
    clusters: np.ndarray | pd.Series | None = None,
    weights: np.ndarray | None = None,
) -> Estimate:
    """The mean of values in [0, 1] (yes or no, scores, probabilities) with an interval over topics.

    The interval is Wilson's at the effective number of topics; for one yes or no a topic that is Wilson's
    interval itself. `topics` names the topic of every row; without it every row is a topic of its own. `clusters`
    names its cluster, where topics are not independent: these are then what varies; n counts topics. `weights` say how
    many rows each row stands for (see `weights_of`). With fewer than two topics or clusters lo and hi are NaN; without
    rows the value is NaN, too. Raises DataError for a value outside [0, 1].
    """
    x = np.asarray(values, dtype=float)
    outside = ~((x >= -1e-9) & (x <= 1 + 1e-9))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise DataError(f"value {row} is {x[row]}; a mean of shares or scores takes numbers in [0, 1]")
    x = np.clip(x, 0, 1)
    codes, n, n_topics = units_among(len(x), topics, clusters)
    value = min(float(np.average(x, weights=weights)), 1.0) if n else float("nan")
    if n < 2:
        return Estimate(value, float("nan"), float("nan"), n_topics, level)
    w = np.ones(len(x)) if weights is None else weights
    sums, rows = np.bincount(codes, w * x, minlength=n), np.bincount(codes, w, minlength=n)
    lo, hi = wilson_interval(value, effective_topics(sums, rows, None, n_topics, level), level)
    return Estimate(value, min(lo, value), max(hi, value), n_topics, level)


def paired_share_interval(
    differences: np.ndarray,
    topics: np.ndarray | pd.Series | None = None,
    level: float = LEVEL,
    weights: np.ndarray | None = None,
    clusters: np.ndarray | pd.Series | None = None,
) -> Estimate:
    """The mean of paired differences 1, 0 or -1 of yes-or-no values, with an interval over topics.

    Wald's interval after half a topic was added to each of the four cells of the paired table (Agresti & Min 2005), so
    that it has a width where no row differs. With several rows a topic the variance is that of the ratio mean over
    topics. `topics` names the topic of every row; without it every row is a topic of its own. `weights` say how many
    rows each row stands for (see `weights_of`), `clusters` as in `bounded_mean`. NaN limits for fewer than two topics
    or clusters.
    """
    codes, n, n_topics = units_among(len(differences), topics, clusters)
    weights = np.ones(len(differences)) if weights is None else weights
    sums, rows = (np.bincount(codes, x, minlength=n) for x in (weights * differences, weights))
    critical = student_of(rows, n_topics, level) if n > 1 else float("nan")
    return _paired(sums, rows, n_topics, _ADDED_SHARES, critical, 1.0, level)


def paired_mean(
    differences: np.ndarray, level: float = LEVEL, reach: float = 1.0, clusters: np.ndarray | None = None
) -> Estimate:
    """The mean of paired differences of scores, float [topics] in [-reach, reach], with an interval over topics.

    NaN where a topic lacks a value; n counts the others. Student's interval after one topic was added: a
    quarter of it differs by -reach, a quarter by reach, half of it by nothing. Where few topics of a sample
    differ, or none, the sample does not show how much others may (docs/method.md). `clusters` as in
    `bounded_mean`. NaN limits for fewer than two topics or clusters.
    """
    from scipy.special import stdtrit

    known = ~np.isnan(differences)
    codes, n, n_topics = units_among(int(known.sum()), None, None if clusters is None else clusters[known])
    sums, rows = np.bincount(codes, differences[known], minlength=n), np.bincount(codes, minlength=n).astype(float)
    critical = float("nan")
    if n > 1:
        critical = (
            student_of(rows, n_topics, level)
            if are_clusters(rows, n_topics)
            else float(-stdtrit(n - 1, (1 - level) / 2))
        )
    return _paired(sums, rows, n_topics, _ADDED_SCORES, critical, reach, level)


def paired_means(
    differences: np.ndarray, level: float = LEVEL, reach: float = 1.0, clusters: np.ndarray | None = None
) -> list[Estimate]:
    """`paired_mean` of every column of [topics, pairs]."""
    return [paired_mean(column, level, reach, clusters) for column in differences.T]


def _paired(
    sums: np.ndarray, rows: np.ndarray, n_topics: int, added: float, critical: float, reach: float, level: float
) -> Estimate:
    """The ratio mean of sums over rows [topics or clusters], with Wald's interval after adding topics.

    A quarter of the `added` topics differs by -reach, a quarter by reach; the others differ by nothing.
    """
    n = len(sums)
    value = float(sums.sum() / rows.sum()) if n else float("nan")
    if n < 2:
        return Estimate(value, float("nan"), float("nan"), n_topics, level)
    size = _unseen_size(rows, n_topics)
    total = rows.sum() + added * size
    middle = sums.sum() / total
    unseen = size**2 * added * (reach**2 / 2 + middle**2)
    squares = (without_own_part(sums - middle * rows, rows, n_topics) ** 2).sum()
    width = critical * math.sqrt(squares + unseen) / total
    lo, hi = max(float(middle - width), -reach), min(float(middle + width), reach)
    return Estimate(value, min(lo, value), max(hi, value), n_topics, level)


def topic_weights(n_topics: int, n_boot: int, seed: int, width: int = 1) -> Iterator[np.ndarray]:
    """Yields int32 [replicates, n_topics] blocks, n_boot rows in all: how often each topic was drawn.

    Each row sums to n_topics. The rows depend on the seed alone, not on `width`: the elements per replicate that the
    caller builds from a block. It sets the height of a block, so that the memory stays bounded.
    """
    rng = np.random.default_rng(seed)
    height = max(1, _BLOCK // max(n_topics, width, 1))
    for start in range(0, n_boot, height):
        rows = min(height, n_boot - start)
        drawn = rng.integers(n_topics, size=(rows, n_topics))
        drawn += np.arange(rows)[:, None] * n_topics
        yield np.bincount(drawn.ravel(), minlength=rows * n_topics).reshape(rows, n_topics).astype(np.int32)


def percentile_interval(replicates: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """The central `level` of the replicates, without NaN ones (undefined in a resample)."""
    known = replicates[~np.isnan(replicates)]
    if not len(known):
        return float("nan"), float("nan")
    lo, hi = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(lo), float(hi)


def mean_replicates(sums: np.ndarray, rows: np.ndarray, n_boot: int = 1000, seed: int = 0) -> np.ndarray:
    """Means over all rows in resamples of topics, float64 [n_boot, columns]; NaN if none was drawn.

    A resample needs the sum and the number of rows of each topic only: `sums` and `rows` are [topics, columns].
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
    clusters: np.ndarray | pd.Series | None = None,
) -> Estimate:
    """The mean of all rows with its percentile interval over topics.

    `topics` names the topic of every row; without it every row is a topic of its own. `weights` say how many
    rows each row stands for (see `weights_of`), `clusters` as in `bounded_mean`: whole clusters are drawn, and the
    interval is that of `expanded`. With fewer than two topics or clusters lo and hi are NaN; without rows the
    value is NaN, too.
    """
    x = np.asarray(values, dtype=float)
    codes, n, n_topics = units_among(len(x), topics, clusters)
    value = float(np.average(x, weights=weights)) if n else float("nan")
    if n < 2:
        return Estimate(value, float("nan"), float("nan"), n_topics, level)
    w = np.ones(len(x)) if weights is None else weights
    sums, rows = np.bincount(codes, w * x, minlength=n), np.bincount(codes, w, minlength=n)
    replicates = mean_replicates(sums[:, None], rows[:, None], n_boot, seed)
    reached = expanded(level, rows, n_topics)
    return Estimate(value, *percentile_interval(replicates[:, 0], reached), n_topics, level)


def expanded(level: float, rows: np.ndarray, n_topics: int | None) -> float:
    """The percentile level over few resampled clusters (`rows` of each) that covers `level`.

    Hesterberg's (2015) expanded percentile interval: normal quantiles as far out as Student's (`student_of`) times
    the root of n / (n - 1), by which resamples spread too little. The level itself for independent topics.
    """
    from scipy.special import ndtr

    if not are_clusters(rows, n_topics):
        return level
    return float(1 - 2 * ndtr(-student_of(rows, n_topics, level) * math.sqrt(len(rows) / (len(rows) - 1))))


def level_of_resamples(frame: pd.DataFrame, level: float) -> float:
    """`expanded` for a frame of outcomes whose `units_of` are resampled."""
    topics = frame["qid"].groupby(units_of(frame).to_numpy()).nunique().to_numpy(dtype=float)
    return expanded(level, topics, int(topics.sum())) if len(topics) > 1 else level
