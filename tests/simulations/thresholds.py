"""How often a threshold is called useful, and how often the best is among those not rejected."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from ragauge.estimate import fit_threshold


def useful_thresholds(n: int, slope: float, share: float, trials: int, seed: int) -> tuple[float, float]:
    """How often k is called useful, and how often its accuracy on the fit beats the constant answer.

    Scores are uniform; an answer is right with the logistic of slope * (score - 1/2), `share` at the middle.
    With a slope of 0 the score is useless.
    """
    rng = np.random.default_rng(seed)
    useful = beats = 0
    for trial in range(trials):
        score = rng.random(n)
        right = rng.random(n) < expit(logit(share) + slope * (score - 0.5))
        k = fit_threshold(score, right, "above", seed=trial, n_splits=5)
        useful += k.useful
        beats += k.accuracy > k.base_rate
    return useful / trials, beats / trials


def useful_over_systems(n: int, slope: float, trials: int, seed: int, within: bool = True) -> float:
    """How often k is called useful over three systems that are right in 20, 50 and 80 %, on n topics.

    Scores of the better system are higher. Within a system an answer is right with the logistic of slope *
    (score - its mean): with a slope of 0 the score tells systems apart, and nothing else. `within`: whether
    it is held against each system's own constant answer.
    """
    rng = np.random.default_rng(seed)
    shares = np.repeat([0.2, 0.5, 0.8], n)
    topics, systems = np.tile(np.arange(n), 3), np.repeat([0, 1, 2], n)
    useful = 0
    for trial in range(trials):
        score = shares + rng.uniform(-0.2, 0.2, 3 * n)
        right = rng.random(3 * n) < expit(logit(shares) + slope * (score - shares))
        k = fit_threshold(score, right, "above", topics, seed=trial, n_splits=5, systems=systems if within else None)
        useful += k.useful
    return useful / trials


def threshold_coverage(n: int, rows: int, slope: float, trials: int, seed: int) -> tuple[float, float]:
    """How often the best k, 0.6, is one of those not rejected, and how often it lies between their ends.

    Of several rows a topic half share their luck.
    """
    rng = np.random.default_rng(seed)
    inside = between = 0
    topics = np.repeat(np.arange(n), rows)
    for _ in range(trials):
        score, own, shared = rng.random(n * rows), rng.random(n * rows), rng.random(n)[topics]
        luck = np.where(rng.random(n * rows) < 0.5, shared, own) if rows > 1 else own
        k = fit_threshold(score, luck < expit(slope * (score - 0.6)), "above", topics)
        inside += any(0.6 in part for part in k.not_rejected)
        between += k.set_min <= 0.6 <= k.set_max
    return inside / trials, between / trials
