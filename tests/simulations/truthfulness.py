"""Intervals of CRAG's score where the shares of the judge classes are known."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragauge.estimate.board import mean_of
from ragauge.estimate.intervals import bootstrap_mean
from ragauge.measures.answers import SCORES, TRUTHFULNESS

# Shares of classes 1 to 5.
POPULATIONS: dict[str, tuple[float, ...]] = {
    "97 % right, 3 % wrong": (0.0, 0.0, 0.0, 0.03, 0.97),
    "half right, a fifth lack, the rest alike": (0.2, 0.1, 0.1, 0.1, 0.5),
    "a third right, two thirds hallucinated": (0.0, 0.35, 0.0, 0.32, 0.33),
}


def coverage(shares: tuple[float, ...], n_topics: int, trials: int, seed: int) -> float:
    """Share of 95 % intervals that hold the true mean."""
    return _held(shares, n_topics, trials, seed, before=False)


def coverage_of_bootstrap(shares: tuple[float, ...], n_topics: int, trials: int, seed: int) -> float:
    """The same of a bootstrap over topics, which scores of any size have."""
    return _held(shares, n_topics, trials, seed, before=True)


def _held(shares: tuple[float, ...], n_topics: int, trials: int, seed: int, before: bool) -> float:
    scores = np.array([SCORES[c] for c in (1, 2, 3, 4, 5)])
    truth = float(scores @ np.array(shares))
    rng = np.random.default_rng(seed)
    topics = pd.Series(np.arange(n_topics).astype(str))
    held = 0
    for _ in range(trials):
        values = pd.Series(rng.choice(scores, n_topics, p=shares))
        found = (
            bootstrap_mean(values, topics, 500, seed) if before else mean_of(values, topics, TRUTHFULNESS, 500, seed)
        )
        held += found.lo - 1e-9 <= truth <= found.hi + 1e-9
    return held / trials
