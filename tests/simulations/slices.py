"""How often intervals of an average over slices hold the true average."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from ragauge.estimate.intervals import effective_topics
from ragauge.estimate.slices import macro_averages, slice_differences

# Topics of each slice, the share of them that is right, and the weight of the slice.
POPULATIONS: dict[str, dict[str, tuple[int, float, float]]] = {
    "slices of one size": {"a": (40, 0.6, 1.0), "b": (40, 0.4, 1.0), "c": (40, 0.8, 1.0)},
    "slices of different sizes": {
        "a": (200, 0.7, 1.0), "b": (40, 0.5, 1.0), "c": (12, 0.9, 1.0), "d": (8, 0.2, 1.0),
    },
    "shares of 0.02 to 0.99": {"a": (60, 0.99, 1.0), "b": (20, 0.97, 1.0), "c": (10, 0.02, 1.0)},
    "weights 1, 3 and 6": {"a": (200, 0.7, 1.0), "b": (40, 0.5, 3.0), "c": (12, 0.9, 6.0)},
    "20 slices": {f"s{i}": (15, 0.9, 1.0) for i in range(20)},
    "30 slices of two topics": {f"s{i}": (2, 0.9, 1.0) for i in range(30)},
    "a slice of one topic": {"a": (60, 0.7, 1.0), "b": (30, 0.4, 1.0), "c": (1, 0.6, 1.0)},
}  # fmt: skip
MEASURES = ("correct_share", "ir_score")


def estimates(population: str, trials: int, rng: np.random.Generator) -> pd.DataFrame:
    """What `slice_estimates` gives of every trial (column `trial`), but for the slices' own intervals.

    The score of a topic is 1 for the share that is right; else it is uniform between 0 and 0.8.
    """
    rows = []
    for name, (n, p, _) in POPULATIONS[population].items():
        right = rng.random((trials, n)) < p
        score = np.where(right, 1.0, rng.uniform(0, 0.8, (trials, n)))
        for trial in range(trials):
            tells = effective_topics(score[trial], np.ones(n)) if n > 1 else 1.0
            rows.append((trial, "kind", name, "correct_share", right[trial].mean(), n, n))
            rows.append((trial, "kind", name, "ir_score", score[trial].mean(), n, tells))
    columns = ["trial", "slicing", "slice", "measure", "value", "n", "effective_n"]
    return pd.DataFrame(rows, columns=columns).assign(lo=np.nan, hi=np.nan)


def true_average(population: str, measure: str) -> float:
    """The weighted mean over slices of P(right), or of the mean score."""
    slices = POPULATIONS[population].values()
    shares = np.array([p for _, p, _ in slices])
    means = shares if measure == "correct_share" else shares + (1 - shares) * 0.4
    return float(np.average(means, weights=[w for _, _, w in slices]))


@cache
def coverage(population: str, trials: int, seed: int) -> dict[str, float]:
    """How often the 95 % interval of the average over slices holds the true one, by measure."""
    rng = np.random.default_rng(seed)
    weights = {"kind": {name: w for name, (_, _, w) in POPULATIONS[population].items()}}
    truth = {measure: true_average(population, measure) for measure in MEASURES}
    found = macro_averages(estimates(population, trials, rng), weights)
    true = found["measure"].map(truth)
    held = (found["lo"] <= true) & (true <= found["hi"])
    return {measure: float(held[found["measure"] == measure].mean()) for measure in MEASURES}


def differences_found(n_slices: int, trials: int, seed: int) -> float:
    """How often two systems that are alike differ in some slice after the correction, at 5 %."""
    rng = np.random.default_rng(seed)
    found = 0
    for _ in range(trials):
        n = 15 * n_slices
        base = rng.uniform(0.2, 0.8, n)
        parts = [
            pd.DataFrame(
                {
                    "qid": np.arange(n),
                    "system": system,
                    "ir_score": base + rng.uniform(-0.2, 0.2, n),
                    "label": pd.array([None] * n, dtype="Int8"),
                    "slice:kind": np.repeat([f"s{i}" for i in range(n_slices)], 15),
                }
            )
            for system in ("a", "b")
        ]
        rows = slice_differences(pd.concat(parts, ignore_index=True), "a", "b")
        found += int((rows["p_holm"] < 0.05).any())
    return found / trials
