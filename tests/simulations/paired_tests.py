"""How often paired tests call two systems different."""

from __future__ import annotations

import numpy as np

from ragauge.estimate.pairs import mcnemar_p, sign_flip_p


def hallucination_rejections(rates: tuple[float, float], shared: float, n: int, trials: int, seed: int) -> float:
    """How often the paired test calls two systems with these hallucination rates different at 5 %.

    On a `shared` part of the n topics the same topics are hard for both systems.
    """
    rng = np.random.default_rng(seed)
    size = (n, trials)
    common, ease = rng.random(size) < shared, rng.random(size)
    first, second = (np.where(common, ease, rng.random(size)) < rate for rate in rates)
    return float(np.mean(mcnemar_p(first.astype(float) - second) < 0.05))


def sign_flip_rejections(skewed: bool, n: int, trials: int, seed: int) -> float:
    """How often the sign-flip test rejects at 5 % where the mean difference is 0.

    Skewed: nine topics of ten lose 0.1 and one wins 0.9, so that the two systems are not exchangeable.
    """
    rng = np.random.default_rng(seed)
    size = (n, trials)
    differences = np.where(rng.random(size) < 0.1, 0.9, -0.1) if skewed else rng.normal(0, 0.3, size)
    return float(np.mean(sign_flip_p(differences, seed) < 0.05))
