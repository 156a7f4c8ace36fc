"""Conversations of eight turns: turns that share what makes their conversation easy or hard, with known truth.

A turn's latent value of a system is root(rho) of its conversation's and root(1 - rho) of its own normal variable, of
each system by itself. Turns get harder: the share of right answers falls from 0.6 in the first turn to 0.32 in the
last.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.stats import norm

from ragauge.estimate import bounded_mean
from ragauge.estimate.intervals import Estimate, paired_mean, paired_share_interval
from ragauge.plugins.conversations.finding import later_less_earlier

CONVERSATIONS, TURNS = 30, 8
RHOS = (0.0, 0.3, 0.6)
EASE = 0.6 - 0.04 * np.arange(TURNS)  # the share of right answers in each turn
_OF = np.repeat(np.arange(CONVERSATIONS), TURNS)
_TURN = np.tile(np.arange(1, TURNS + 1), CONVERSATIONS)
_BETTER = 0.1  # by which the second system is right more often

# The estimates over conversations and over turns, and the truth.
Trial = Callable[[np.random.Generator, float], tuple[list[Estimate], float]]


def _latent(rng: np.random.Generator, rho: float, systems: int = 1) -> np.ndarray:
    of_conversation = rng.standard_normal((CONVERSATIONS, systems))[_OF]
    return np.sqrt(rho) * of_conversation + np.sqrt(1 - rho) * rng.standard_normal((len(_OF), systems))


def _right(latent: np.ndarray, better: float = 0.0) -> np.ndarray:
    return (latent < norm.ppf(EASE + better)[_TURN - 1]).astype(float)


def share(rng: np.random.Generator, rho: float) -> tuple[list[Estimate], float]:
    x = _right(_latent(rng, rho)[:, 0])
    return [bounded_mean(x, clusters=of) for of in (_OF, None)], float(EASE.mean())


def score(rng: np.random.Generator, rho: float) -> tuple[list[Estimate], float]:
    """Scores of a uniform distribution, whose upper end falls with the turns."""
    x = norm.cdf(_latent(rng, rho)[:, 0]) * EASE[_TURN - 1]
    return [bounded_mean(x, clusters=of) for of in (_OF, None)], float(EASE.mean() / 2)


def shares_of_two(rng: np.random.Generator, rho: float) -> tuple[list[Estimate], float]:
    latent = _latent(rng, rho, 2)
    d = _right(latent[:, 1], _BETTER) - _right(latent[:, 0])
    return [paired_share_interval(d, clusters=of) for of in (_OF, None)], _BETTER


def scores_of_two(rng: np.random.Generator, rho: float) -> tuple[list[Estimate], float]:
    x = norm.cdf(_latent(rng, rho, 2))
    return [paired_mean(x[:, 0] - x[:, 1], clusters=of) for of in (_OF, None)], 0.0


def later(part: str, worse: bool) -> Trial:
    """Later turns less earlier ones; over turns: as if each turn were a conversation's only one."""

    def trial(rng: np.random.Generator, rho: float) -> tuple[list[Estimate], float]:
        x = _right(_latent(rng, rho)[:, 0]) if worse else (_latent(rng, rho)[:, 0] < 0).astype(float)
        first = TURNS // 2 if part == "half" else 1
        truth = float(EASE[first:].mean() - EASE[:first].mean()) if worse else 0.0
        over = later_less_earlier(pd.Series(x), pd.Series(_TURN), pd.Series(_OF), part)
        early = first >= _TURN
        a, b = bounded_mean(x[~early]), bounded_mean(x[early])
        d = a.value - b.value
        apart = np.hypot(a.hi - a.lo, b.hi - b.lo) / 2
        return [over, Estimate(d, d - apart, d + apart, len(x), over.level)], truth

    return trial


TRIALS: dict[str, Trial] = {
    "share of right answers": share,
    "mean score": score,
    "paired difference of shares": shares_of_two,
    "paired difference of scores": scores_of_two,
    "later turns less the first, which are worse": later("first", True),
    "second half less the first half, which is worse": later("half", True),
    "second half less the first half, no turn is worse": later("half", False),
}


def coverage(kind: str, rho: float, trials: int, seed: int) -> np.ndarray:
    """float64 [2, 2]: over conversations, and over turns, how often intervals hold the truth, and their width."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(trials):
        estimates, truth = TRIALS[kind](rng, rho)
        found.append([[float(e.lo <= truth <= e.hi), e.hi - e.lo] for e in estimates])
    return np.mean(found, axis=0)
