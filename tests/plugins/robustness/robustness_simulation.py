"""How often the intervals of the four abilities hold the true numbers of an LLM that is drawn."""

from __future__ import annotations

from functools import cache

import numpy as np

from ragauge.estimate import Estimate
from ragauge.estimate.intervals import bounded_mean, paired_share_interval
from ragauge.plugins.robustness.estimate import unpaired_difference

# P(right) without noise, the factor that 80 % noise takes it by, the share of topics whose answers are one
# draw, P(refusal), P(right | evidence in several documents), P(fooled).
LLMS: dict[str, tuple[float, float, float, float, float, float]] = {
    "an LLM that noise costs much": (0.8, 0.6, 0.7, 0.6, 0.6, 0.4),
    "a strong LLM": (0.97, 0.97, 0.8, 0.95, 0.9, 0.05),
    "a weak LLM": (0.3, 0.4, 0.5, 0.2, 0.1, 0.9),
}
NUMBERS = ("drop", "rejection", "several less one document", "fooled")


def drawn(llm: str, n: int, rng: np.random.Generator) -> dict[str, tuple[Estimate, float]]:
    """Every number as `ragauge.plugins.robustness.estimate` estimates it from n drawn topics, and the true one.

    A third of the topics has evidence in several documents. Whether a topic is right without noise and with
    it is one draw for some topics and two for the others.
    """
    none, factor, shared, refuses, several, fooled = LLMS[llm]
    many = np.arange(n) % 3 == 0
    p = np.where(many, several, none)
    u = rng.random(n)
    v = np.where(rng.random(n) < shared, u, rng.random(n))
    right, noisy = u < p, v < p * factor
    drop = paired_share_interval(right.astype(float) - noisy)
    rejection = bounded_mean(rng.random(n) < refuses)
    joined = unpaired_difference(bounded_mean(right[many]), bounded_mean(right[~many]))
    return {
        "drop": (drop, float((p - p * factor).mean())),
        "rejection": (rejection, refuses),
        "several less one document": (joined, several - none),
        "fooled": (bounded_mean(rng.random(n) < fooled), fooled),
    }


@cache
def coverage(llm: str, n: int, trials: int, seed: int) -> dict[str, float]:
    """How often the 95 % interval of each of NUMBERS holds the true one."""
    rng = np.random.default_rng(seed)
    held = dict.fromkeys(NUMBERS, 0)
    for _ in range(trials):
        for name, (e, true) in drawn(llm, n, rng).items():
            held[name] += bool(e.lo <= true <= e.hi)
    return {name: n_held / trials for name, n_held in held.items()}
