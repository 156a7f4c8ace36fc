"""Coverage of intervals of shares and mean scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit
from scipy.stats import binom
from scipy.stats import t as t_distribution

from ragauge.estimate import Estimate
from ragauge.estimate.intervals import bootstrap_mean, wilson_interval

SHARES = np.arange(0.005, 0.9951, 0.005)
Interval = Callable[[np.ndarray, np.ndarray], Estimate]  # of values and the topic of each


def binomial_coverage(interval: Interval, n: int, shares: np.ndarray = SHARES) -> np.ndarray:
    """float64 [shares]: how often the interval of n yes-or-no topics holds the true share, enumerated.

    No draws: each number of hits counts with its binomial probability.
    """
    topics = np.arange(n)
    found = [interval((topics < hits).astype(float), topics) for hits in range(n + 1)]
    lo, hi = np.array([e.lo for e in found]), np.array([e.hi for e in found])
    inside = (lo <= shares[:, None]) & (shares[:, None] <= hi)
    return (binom.pmf(np.arange(n + 1), n, shares[:, None]) * inside).sum(axis=1)


def clustered_coverage(
    interval: Interval, share: float, correlation: float, n_topics: int, n_rows: int, trials: int, seed: int
) -> float:
    """How often the interval holds the share, with n_rows yes-or-no rows a topic (beta-binomial)."""
    rng = np.random.default_rng(seed)
    size = (trials, n_topics)
    within = 1 / correlation - 1 if correlation else 0.0
    of_topic = rng.beta(share * within, (1 - share) * within, size) if correlation else np.full(size, share)
    values = rng.random((*size, n_rows)) < of_topic[:, :, None]
    topics = np.repeat(np.arange(n_topics), n_rows)
    found = [interval(trial.ravel().astype(float), topics) for trial in values]
    return float(np.mean([e.lo <= share <= e.hi for e in found]))


# Distributions of a topic's score: how many are 1, how many are 0, and Beta(a, b) for the others.
SCORES = {
    "95 % are 1, the rest uniform": (0.95, 0.0, 1.0, 1.0),
    "98 % are 1, the rest uniform": (0.98, 0.0, 1.0, 1.0),
    "99 % are 1, the rest uniform": (0.99, 0.0, 1.0, 1.0),
    "half are 1, a fifth 0, the rest uniform": (0.5, 0.2, 1.0, 1.0),
    "70 % are 1, the rest Beta(5, 2)": (0.7, 0.0, 5.0, 2.0),
    "Beta(2, 2)": (0.0, 0.0, 2.0, 2.0),
    "Beta(20, 1)": (0.0, 0.0, 20.0, 1.0),
}


def score_coverage(interval: Interval, name: str, n: int, trials: int, seed: int) -> float:
    """How often the interval of a mean score of n topics holds the true mean."""
    ones, zeros, a, b = SCORES[name]
    rng = np.random.default_rng(seed)
    kind, other = rng.random((trials, n)), rng.beta(a, b, (trials, n))
    values = np.where(kind < ones, 1.0, np.where(kind < ones + zeros, 0.0, other))
    mean = ones + (1 - ones - zeros) * a / (a + b)
    topics = np.arange(n)
    found = [interval(trial, topics) for trial in values]
    return float(np.mean([e.lo <= mean <= e.hi for e in found]))


def bootstrap_t(values: np.ndarray, topics: np.ndarray, n_boot: int = 400) -> Estimate:
    """The mean of one value a topic with a bootstrap-t interval (Efron & Tibshirani 1993, section 12.5)."""
    n, mean, error = len(values), values.mean(), values.std() / np.sqrt(len(values))
    weights = np.random.default_rng(0).multinomial(n, [1 / n] * n, size=n_boot) / n
    means = weights @ values
    errors = np.sqrt(np.maximum(weights @ values**2 - means**2, 0) / n)
    t = np.divide(means - mean, errors, out=np.zeros(n_boot), where=errors > 1e-9)
    low, high = np.quantile(t, [0.025, 0.975])
    return Estimate(float(mean), max(float(mean - high * error), 0.0), min(float(mean - low * error), 1.0), n)


def logit_t(values: np.ndarray, topics: np.ndarray) -> Estimate:
    """The mean of one value a topic with a logit-t interval; Wilson's where the mean is 0 or 1."""
    n, mean = len(values), float(values.mean())
    if not 0 < mean < 1:
        return Estimate(mean, *wilson_interval(mean, n), n)
    reach = t_distribution.isf(0.025, n - 1) * values.std(ddof=1) / np.sqrt(n) / (mean * (1 - mean))
    return Estimate(mean, float(expit(logit(mean) - reach)), float(expit(logit(mean) + reach)), n)


# Differences of scores: how many topics differ, and by how much; the others do not.
RARE = {f"{share:.0%} of the topics lose {-size:g}": (share, size)
        for share, size in ((0.01, -0.5), (0.02, -1.0), (0.03, -0.5), (0.1, -0.5), (0.05, -0.2))}  # fmt: skip


def rare_coverage(interval: Callable[[np.ndarray], Estimate], name: str, n: int) -> float:
    """How often the interval of a mean difference of scores of n topics holds the truth, enumerated."""
    share, size = RARE[name]
    found = [interval(np.repeat([size, 0.0], [k, n - k])) for k in range(n + 1)]
    held = [e.lo <= share * size + 1e-12 and share * size - 1e-12 <= e.hi for e in found]
    return float(binom.pmf(np.arange(n + 1), n, share) @ held)


# Differences of scores of most topics, [trials, n], and their true mean.
DENSE: dict[str, tuple[Callable[[np.random.Generator, tuple[int, int]], np.ndarray], float]] = {
    "normal, sd 0.15": (lambda rng, size: np.clip(rng.normal(0.02, 0.15, size), -1, 1), 0.02),
    "two scores of Beta(0.5, 0.5)": (lambda rng, size: rng.beta(0.5, 0.5, size) - rng.beta(0.5, 0.5, size), 0.0),
    "normal, sd 0.05, and 3 % of the topics lose 0.9 more": (
        lambda rng, size: rng.normal(0, 0.05, size) - 0.9 * (rng.random(size) < 0.03), -0.027,
    ),
}  # fmt: skip


def dense_coverage(interval: Callable[[np.ndarray], Estimate], name: str, n: int, trials: int, seed: int) -> float:
    """How often the interval of a mean difference of scores of n topics holds the truth."""
    draw, truth = DENSE[name]
    found = [interval(trial) for trial in draw(np.random.default_rng(seed), (trials, n))]
    return float(np.mean([e.lo <= truth <= e.hi for e in found]))


def difference_coverage(interval: Callable[[np.ndarray], Estimate], won: float, lost: float, n: int) -> float:
    """How often the interval of a paired difference of shares holds won - lost, enumerated over n topics.

    `won` and `lost` are the probabilities that only the one or only the other side counts.
    """
    from scipy.stats import multinomial

    truth, covered = won - lost, 0.0
    for a in range(n + 1):
        for b in range(n + 1 - a):
            weight = float(multinomial.pmf([a, b, n - a - b], n, [won, lost, 1 - won - lost]))
            if weight > 1e-12:
                found = interval(np.repeat([1.0, -1.0, 0.0], [a, b, n - a - b]))
                covered += weight * (found.lo <= truth + 1e-12 and truth - 1e-12 <= found.hi)
    return covered


def mean_over_systems(trials: int, seed: int) -> tuple[float, float]:
    """How often a bootstrap interval of the mean over five systems on 80 topics holds 0: over topics, over rows.

    Half of the variance of a value is its topic's.
    """
    rng, over_topics, over_rows = np.random.default_rng(seed), 0, 0
    topics = np.repeat(np.arange(80), 5)
    for trial in range(trials):
        values = np.repeat(rng.normal(size=80), 5) + rng.normal(size=400)
        for_topics, for_rows = (bootstrap_mean(values, of, 200, trial) for of in (topics, None))
        over_topics += for_topics.lo <= 0 <= for_topics.hi
        over_rows += for_rows.lo <= 0 <= for_rows.hi
    return over_topics / trials, over_rows / trials
