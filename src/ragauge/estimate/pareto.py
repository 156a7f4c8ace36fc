"""Which systems no other beats at a lower cost: the Pareto frontier of score against cost."""

from __future__ import annotations

import numpy as np


def frontier(cost: np.ndarray, score: np.ndarray) -> np.ndarray:
    """bool [points]: whether no other point is better in cost or score and not worse in the other.

    Equal points are on the frontier together. A point whose cost or score is NaN is not on it.
    """
    cost, score = np.asarray(cost, dtype=float), np.asarray(score, dtype=float)
    known = ~(np.isnan(cost) | np.isnan(score))
    at_most = cost[:, None] <= cost[None, :]
    at_least = score[:, None] >= score[None, :]
    better = (cost[:, None] < cost[None, :]) | (score[:, None] > score[None, :])
    beaten = (at_most & at_least & better & known[:, None]).any(axis=0)
    found: np.ndarray = known & ~beaten
    return found
