"""How often the set of best systems holds the best one, its size, and how much too high the top stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from ragauge.estimate.best import best_systems, top_optimism
from ragauge.estimate.pairs import holm, sign_flip_p


@dataclass(frozen=True)
class BestSets:
    """Over the trials: shares that hold what they should, and mean sizes."""

    holds: float  # one of the best, the first, is in the set
    holds_all: float  # every best one is in the set of p_all_best
    size: float
    size_all: float
    holm_holds: float
    holm_size: float


def draw(means: Sequence[float], n: int, right: bool, rng: np.random.Generator) -> np.ndarray:
    """Values [n topics, systems] with these means: scores of deviation 0.25, or yes and no (`right`).

    Half of the variance of scores is the topic's, and half of the topics are as hard for all systems.
    """
    size = (n, len(means))
    if right:
        shared, ease = rng.random((n, 1)) < 0.5, rng.random((n, 1))
        return (np.where(shared, ease, rng.random(size)) < np.array(means)).astype(float)
    noise = rng.normal(size=(n, 1)) + rng.normal(size=size)
    return np.array(means) + 0.25 * np.sqrt(0.5) * noise


def best_sets(
    means: Sequence[float], n: int, trials: int, seed: int, right: bool = False, before: bool = False
) -> BestSets:
    """The sets at 95 % over the trials; the first of the means is one of the best.

    `before` adds what was marked before: not told from the highest by a sign-flip test after Holm's
    correction over all pairs.
    """
    rng = np.random.default_rng(seed)
    best = np.array(means) == max(means)
    found = []
    for trial in range(trials):
        x = draw(means, n, right, rng)
        p = best_systems(pd.DataFrame(x), seed=trial)
        single, every = p["p_best"].to_numpy() >= 0.05, p["p_all_best"].to_numpy() >= 0.05
        old = holm_marks(x, trial) if before else np.zeros(len(means), dtype=bool)
        found.append((single[0], every[best].all(), single.sum(), every.sum(), old[0], old.sum()))
    return BestSets(*np.mean(found, axis=0).tolist())


def holm_marks(x: np.ndarray, seed: int) -> np.ndarray:
    """bool [systems]: not told from the highest by sign-flip tests of all pairs with Holm's correction."""
    pairs = list(combinations(range(x.shape[1]), 2))
    p = holm(sign_flip_p(np.array([x[:, a] - x[:, b] for a, b in pairs]).T, seed))
    top = int(x.mean(axis=0).argmax())
    marks = np.ones(x.shape[1], dtype=bool)
    for (a, b), value in zip(pairs, p, strict=True):
        if top in (a, b):
            marks[b if a == top else a] = not value < 0.05
    return marks


def optimism(means: Sequence[float], n: int, trials: int, seed: int) -> tuple[float, float]:
    """How much the top score stands above the true mean of its system, and the mean of its estimates."""
    rng = np.random.default_rng(seed)
    truth, estimates = [], []
    for trial in range(trials):
        x = draw(means, n, False, rng)
        top = int(x.mean(axis=0).argmax())
        truth.append(x[:, top].mean() - means[top])
        if trial < 300:  # the truth needs more data sets than the mean of its estimates
            estimates.append(top_optimism(pd.DataFrame(x), seed=trial))
    return float(np.mean(truth)), float(np.mean(estimates))
