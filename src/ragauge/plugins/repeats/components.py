"""The variance of a share or mean, split into topics, answers to a topic, and verdicts on an answer.

Topics are a sample, answers are nested in topics and verdicts in answers. All three parts are unbiased by the method of
moments, as in a nested analysis of variance (Searle, Casella & McCulloch 1992, ch. 3; Cochran 1977, ch. 10), whatever
the distribution. One thing differs from the textbook: equal answers to a topic are one request to the judge, so they
share its verdicts and the error in them. The formulas count that, topic by topic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ragauge.estimate.intervals import LEVEL, Estimate

_BLOCK = 4_000_000  # elements of one block of replicates: bounds the memory
PARTS = ("topic", "answer", "judge")


@dataclass(frozen=True)
class Moments:
    """Each topic's terms in the components, float64 [topics] each; NaN if not estimable.

    mean: over its answers and verdicts. answer, judge: unbiased for the variance between its answers, and between
    verdicts on one of them. within: unbiased for the variance that the topic's mean has by both.
    """

    mean: np.ndarray
    answer: np.ndarray
    judge: np.ndarray
    within: np.ndarray


@dataclass(frozen=True)
class Components:
    """The variance components of a single verdict on a single answer to a random topic, with intervals.

    topic, answer, judge: they add up to that variance; one below 0 says that none of its kind is seen. NaN: unknown.
    With one verdict an answer, the judge's error is a part of `answer`. error: the squared standard error of the mean.
    of_error: the shares of the three in it. n topics, r answers to each, k verdicts on each.
    """

    topic: Estimate
    answer: Estimate
    judge: Estimate
    mean: float
    error: float
    of_error: tuple[float, float, float]
    n: int
    r: int
    k: int


def moments(values: np.ndarray, texts: np.ndarray) -> Moments:
    """Terms of each topic, from values [topics, r, k] and texts [topics, r]: equal numbers for equal answers.

    mean_s is the mean of the k verdicts on answer s, v_s their sample variance, c_s the number of answers equal to s:
    answer = var_s(mean_s) - sum_s v_s (r - c_s) / (k r (r - 1)), judge = mean_s v_s, and
    within = answer / r + sum_s v_s c_s / (r^2 k). With k = 1 the v_s are unknown and taken for 0.
    """
    n, r, k = values.shape
    of_answers = values.mean(axis=2)
    spread = values.var(axis=2, ddof=1) if k > 1 else np.zeros((n, r))
    equal = (texts[:, :, None] == texts[:, None, :]).sum(axis=2)
    nan = np.full(n, np.nan)
    answer = nan
    if r > 1:
        answer = of_answers.var(axis=1, ddof=1) - (spread * (r - equal)).sum(axis=1) / (k * r * (r - 1))
    shared = (spread * equal).sum(axis=1) / (r * r * k)
    judge = spread.mean(axis=1) if k > 1 else nan
    return Moments(of_answers.mean(axis=1), answer, judge, (answer / r if r > 1 else 0.0) + shared)


def components(
    values: np.ndarray,
    texts: np.ndarray,
    n_boot: int = 1000,
    seed: int = 0,
    clusters: np.ndarray | None = None,
    level: float = LEVEL,
) -> Components:
    """The components of [topics, r, k] values, with percentile intervals over resampled topics, or clusters.

    The variance between topics is that of their means less the mean of `within`. NaN intervals for a single topic or
    cluster.
    """
    n, r, k = values.shape
    found = moments(values, texts)
    columns = np.column_stack([found.mean, found.mean**2, found.answer, found.judge, found.within])
    seen = _of_sums(columns.sum(axis=0)[None, :], np.array([n]))[0]
    drawn = np.concatenate([_of_sums(*sums) for sums in _resampled(columns, n_boot, seed, clusters)])
    # A resampled variance is smaller by (n - 1) / n, n the number of units.
    units = n if clusters is None else len(np.unique(clusters))
    drawn[:, 0] += seen[0] / max(units - 1, 1)
    tail = 100 * (1 - level) / 2
    ends = np.percentile(drawn, [tail, 100 - tail], axis=0) if units > 1 else np.full((2, 3), np.nan)
    topic, answer, judge = (
        Estimate(float(value), float(lo) if value == value else math.nan, float(hi) if value == value else math.nan, n)
        for value, lo, hi in zip(seen, *ends, strict=True)
    )
    error = float(found.mean.var(ddof=1)) / n if n > 1 else math.nan
    of_answers = answer.value / r if r > 1 else 0.0
    of_judge = float(found.within.mean()) - of_answers
    parts = (topic.value / n, of_answers / n, of_judge / n)
    of_error = tuple(part / error if error > 0 else math.nan for part in parts)
    return Components(topic, answer, judge, float(found.mean.mean()), error, of_error, n, r, k)  # type: ignore[arg-type]


def _of_sums(sums: np.ndarray, n: np.ndarray) -> np.ndarray:
    """float64 [replicates, 3]: topic, answer, judge, from sums [replicates, 5] over n [replicates] topics."""
    mean, square, answer, judge, within = sums.T / n
    between = (square - mean**2) * n / np.maximum(n - 1, 1)
    return np.column_stack([between - within, answer, judge])


def _resampled(
    columns: np.ndarray, n_boot: int, seed: int, clusters: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of (sums [replicates, columns], topics [replicates]) over resampled topics, or clusters."""
    units = np.arange(len(columns)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    n_units = int(units.max()) + 1
    summed = np.zeros((n_units, columns.shape[1] + 1))
    np.add.at(summed, units, np.column_stack([columns, np.ones(len(columns))]))
    rng = np.random.default_rng(seed)
    for weights in drawn_counts(n_units, n_boot, rng):
        sums = weights @ summed
        yield sums[:, :-1], sums[:, -1]


def drawn_counts(n_units: int, n_boot: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Blocks [replicates, units] of how often a unit is drawn."""
    size = max(1, _BLOCK // n_units)
    even = np.full(n_units, 1 / n_units)
    for start in range(0, n_boot, size):
        yield rng.multinomial(n_units, even, size=min(size, n_boot - start)).astype(float)


def rank_correlation(
    x: np.ndarray, y: np.ndarray, n_boot: int = 1000, seed: int = 0, clusters: np.ndarray | None = None
) -> Estimate:
    """Spearman's correlation of two values per topic, with a percentile interval over resampled topics, or clusters.

    NaN where either is the same for all topics; replicates in which it is are left out of the interval.
    """
    found = _spearman(x, y)
    units = np.arange(len(x)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    members = [np.flatnonzero(units == unit) for unit in range(int(units.max()) + 1)] if clusters is not None else None
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(n_boot if found == found else 0):
        chosen = rng.integers(0, int(units.max()) + 1, int(units.max()) + 1)
        rows = chosen if members is None else np.concatenate([members[unit] for unit in chosen])
        values.append(_spearman(x[rows], y[rows]))
    tail = 100 * (1 - LEVEL) / 2
    known = [value for value in values if value == value]
    lo, hi = np.percentile(known, [tail, 100 - tail]) if known else (math.nan, math.nan)
    return Estimate(found, float(lo), float(hi), len(x))


def _spearman(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.stats import rankdata

    a, b = rankdata(x), rankdata(y)
    a, b = a - a.mean(), b - b.mean()
    spread = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / spread if spread > 0 else math.nan
