"""How often intervals of an average over slices hold the true average."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragauge.estimate.slices import macro_averages, slice_estimates

# Topics of each slice, the share of them that is right, and the weight of the slice.
EVEN = {"a": (40, 0.6, 1.0), "b": (40, 0.4, 1.0), "c": (40, 0.8, 1.0)}
UNEVEN = {"a": (200, 0.7, 1.0), "b": (40, 0.5, 1.0), "c": (12, 0.9, 1.0), "d": (8, 0.2, 1.0)}
EXTREME = {"a": (60, 0.99, 1.0), "b": (20, 0.97, 1.0), "c": (10, 0.02, 1.0)}
WEIGHTED = {"a": (200, 0.7, 1.0), "b": (40, 0.5, 3.0), "c": (12, 0.9, 6.0)}
SINGLE = {"a": (60, 0.7, 1.0), "b": (30, 0.4, 1.0), "c": (1, 0.6, 1.0)}

Slices = dict[str, tuple[int, float, float]]


def topics(slices: Slices, rng: np.random.Generator) -> pd.DataFrame:
    """A topic a row. The score is 1 for the share that is right; else it is uniform between 0 and 0.8."""
    parts = []
    for name, (n, p, _) in slices.items():
        right = rng.random(n) < p
        score = np.where(right, 1.0, rng.uniform(0, 0.8, n))
        parts.append(
            pd.DataFrame(
                {
                    "qid": [f"{name}{i}" for i in range(n)],
                    "ir_score": score,
                    "label": pd.array(np.where(right, 5, 4), dtype="Int8"),
                    "slice:kind": name,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def true_average(slices: Slices, measure: str) -> float:
    """The weighted mean over slices of P(right), or of the mean score."""
    weights = [w for _, _, w in slices.values()]
    shares = np.array([p for _, p, _ in slices.values()])
    means = shares if measure == "correct_share" else shares + (1 - shares) * 0.4
    return float(np.average(means, weights=weights))


def coverage(slices: Slices, measure: str, trials: int, seed: int) -> float:
    """How often the 95 % interval of the average over slices holds the true one."""
    rng = np.random.default_rng(seed)
    weights = {"kind": {name: w for name, (_, _, w) in slices.items()}}
    truth, held = true_average(slices, measure), 0
    for _ in range(trials):
        found = macro_averages(slice_estimates(topics(slices, rng)), weights)
        row = found[found["measure"] == measure].iloc[0]
        held += int(row["lo"] <= truth <= row["hi"])
    return held / trials


def differences_found(n_slices: int, trials: int, seed: int) -> float:
    """How often two systems that are alike differ in some slice after the correction, at 5 %."""
    from ragauge.estimate.slices import slice_differences

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
        rows = slice_differences(pd.concat(parts, ignore_index=True), "a", "b", n_boot=0)
        found += int((rows["p_holm"] < 0.05).any())
    return found / trials
