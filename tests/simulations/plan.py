"""Whether planned numbers of topics keep what they promise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from ragauge.estimate.intervals import paired_means
from ragauge.estimate.pairs import mcnemar_p, paired_shares, sign_flip_p
from ragauge.estimate.plan import detectable_mean, mcnemar_power, topics_for_mean
from ragauge.plugins.planning.topics import sd_upper, share_upper, topics_for_equivalence, topics_for_shares


def score_differences(size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Differences of two systems' IR scores with mean 0: 0 on 60 % of the topics, else uniform in +-1/2.

    Their standard deviation is sqrt(0.4 / 12).
    """
    return np.where(rng.random(size) < 0.6, 0.0, rng.random(size) - 0.5)


_SD = math.sqrt(0.4 / 12)


def power_for_mean(difference: float, comparisons: int, trials: int, seed: int) -> tuple[int, float]:
    """The planned number of topics, and how often the sign-flip test rejects at 5 % / comparisons with it."""
    rng = np.random.default_rng(seed)
    alpha = 0.05 / comparisons
    n = int(topics_for_mean(_SD, difference, 0.8, alpha))
    found = sign_flip_p(score_differences((n, trials), rng) + difference, seed)
    return n, float(np.mean(found < alpha))


def power_for_shares(
    discordant: float, difference: float, comparisons: int, trials: int, seed: int
) -> tuple[int, float]:
    """The planned number of topics, and how often McNemar's test rejects at 5 % / comparisons with it."""
    rng = np.random.default_rng(seed)
    alpha = 0.05 / comparisons
    n = int(topics_for_shares(discordant, difference, 0.8, alpha))
    won = (discordant + difference) / 2
    drawn = rng.random((n, trials))
    values = np.where(drawn < won, 1.0, np.where(drawn < discordant, -1.0, 0.0))
    return n, float(np.mean(mcnemar_p(values) < alpha))


# Differences [topics, trials] of a mean, by kind.
KINDS: dict[str, Callable[[float, tuple[int, int], np.random.Generator], np.ndarray]] = {
    "scores": lambda mean, size, rng: score_differences(size, rng) + mean,
    "right answers, 20 % discordant": lambda mean, size, rng: _won_and_lost(0.2, mean, size, rng),
    "few topics lose .5": lambda mean, size, rng: np.where(rng.random(size) < 2 * mean, 0.5, 0.0),
}


def _won_and_lost(discordant: float, mean: float, size: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    drawn = rng.random(size)
    return np.where(drawn < (discordant + mean) / 2, 1.0, np.where(drawn < discordant, -1.0, 0.0))


def said_equivalent(kind: str, mean: float, margin: float, n: int, trials: int, seed: int) -> float:
    """How often `ragauge compare --equivalent margin` calls two systems equivalent whose difference is `mean`."""
    values = KINDS[kind](mean, (n, trials), np.random.default_rng(seed))
    found = paired_shares(values, 0.9) if "right" in kind else paired_means(values, 0.9)
    return float(np.mean([-margin < one.lo and one.hi < margin for one in found]))


def power_for_equivalence(kind: str, margin: float, trials: int, seed: int) -> tuple[int, float]:
    """The planned number of topics, and how often systems without a difference are called equivalent with it."""
    n = int(topics_for_equivalence(_SD if kind == "scores" else math.sqrt(0.2), margin))
    return n, said_equivalent(kind, 0.0, margin, n, trials, seed)


def power_of_detectable(n: int, trials: int, seed: int) -> float:
    """How often the sign-flip test sees the difference that a sweep of n topics is said to detect.

    Said from the spread that the sweep itself has, and tested on another sweep of n topics.
    """
    rng = np.random.default_rng(seed)
    seen = score_differences((n, trials), rng).std(axis=0, ddof=1)
    shifts = np.array([detectable_mean(float(sd), n) for sd in seen])
    return float(np.mean(sign_flip_p(score_differences((n, trials), rng) + shifts, seed) < 0.05))


def pilots_with_power(n_pilot: int, shares: bool, trials: int, seed: int) -> tuple[float, float]:
    """How many pilots lead to a study of power 0.8 or more: from their spread, and from its upper limit."""
    rng = np.random.default_rng(seed)
    enough = np.zeros(2)
    for _ in range(trials):
        if shares:
            hits = int(rng.binomial(n_pilot, 0.3))
            for at, psi in enumerate((hits / n_pilot, share_upper(hits, n_pilot))):
                n = int(topics_for_shares(psi, 0.1))
                enough[at] += mcnemar_power(n, 0.3, 0.1) >= 0.8
        else:
            values = score_differences((n_pilot,), rng)
            needed = topics_for_mean(_SD, 0.05)
            for at, sd in enumerate((float(values.std(ddof=1)), sd_upper(values))):
                enough[at] += topics_for_mean(sd, 0.05) >= needed
    return float(enough[0] / trials), float(enough[1] / trials)


def power_after_a_pilot_without_differences(n: int, rate: float, loss: float) -> tuple[int, float]:
    """Topics that a pilot of n equal topics plans with 80 % confidence for the true difference rate * loss, where a
    `rate` of the topics loses so much; and the power of the sign-flip test on them, enumerated.
    """
    topics = int(topics_for_mean(sd_upper(np.zeros(n)), rate * loss))
    # Equal losses reject where six differ: 2^(1 - 6) < 0.05.
    return topics, float(stats.binom.sf(5, topics, rate))
