"""How often intervals of an average over slices hold the true average, and what shrinking slices does to them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from ragauge.estimate.intervals import bounded_mean, effective_topics
from ragauge.estimate.shrinkage import shrunk_means
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


@dataclass(frozen=True)
class Shrinkage:
    """What slices' own values and the shrunk ones are worth, (alone, shrunk) each, in points.

    error: root mean squared, over slices and trials. worst: mean of the lowest value less its own truth. held: how
    often the 95 % intervals hold the truth, in per cent of slices. width: of these intervals, on average. last:
    `held` of the last slice alone, which may be unlike the others.
    """

    error: tuple[float, float]
    worst: tuple[float, float]
    held: tuple[float, float]
    width: tuple[float, float]
    last: tuple[float, float]


def sizes(n_slices: int, equal: bool) -> np.ndarray:
    """Topics of each slice: 15 in each, or 3, 8, 15, 40 and 200 in turn."""
    return np.full(n_slices, 15) if equal else np.resize([3, 8, 15, 40, 200], n_slices)


def _drawn(rng: np.random.Generator, n_slices: int, mean: float, spread: float) -> np.ndarray:
    """True shares of slices from a beta distribution of this mean and standard deviation."""
    if spread == 0:
        return np.full(n_slices, mean)
    size = mean * (1 - mean) / spread**2 - 1
    return rng.beta(mean * size, (1 - mean) * size, n_slices)


@cache
def shrinkage(
    kind: str, n_slices: int, equal: bool, mean: float, spread: float, trials: int, seed: int, outlier: float = 0.0
) -> Shrinkage:
    """Slices whose true values have this mean and standard deviation, the last one `outlier` lower.

    kind: "right" (yes or no), "score" (1 for right answers, else uniform between 0 and 0.8), or "difference"
    (two systems' paired right answers, of which four in ten differ; mean is added to their shares).
    """
    rng = np.random.default_rng(seed)
    n = sizes(n_slices, equal)
    found = []
    for _ in range(trials):
        if kind == "difference":
            true, alone, shrunk = _differences(rng, n, mean, spread)
        else:
            share = _drawn(rng, n_slices, mean, spread)
            share[-1] -= outlier
            values = [_values(rng, kind, p, size) for p, size in zip(share, n, strict=True)]
            true = share if kind == "right" else share + (1 - share) * 0.4
            means = [bounded_mean(x) for x in values]
            alone = np.array([(e.value, e.lo, e.hi) for e in means]).T
            tells = [effective_topics(x, np.ones(len(x))) if kind == "score" else len(x) for x in values]
            shrunk = shrunk_means(alone[0], n, tells)
        found.append((true, alone, shrunk))
    truth = np.array([one[0] for one in found])
    return Shrinkage(*zip(*(_worth(truth, np.array([one[at] for one in found])) for at in (1, 2)), strict=True))


def _values(rng: np.random.Generator, kind: str, share: float, n: int) -> np.ndarray:
    right = rng.random(n) < share
    return right.astype(float) if kind == "right" else np.where(right, 1.0, rng.uniform(0, 0.8, n))


def _worth(truth: np.ndarray, found: np.ndarray) -> tuple[float, float, float, float, float]:
    """error, worst, held, width, last of estimates [trials, 3, slices] of the truth [trials, slices]."""
    value, lo, hi = found[:, 0], found[:, 1], found[:, 2]
    lowest = value.argmin(axis=1)[:, None]
    worst = np.take_along_axis(value - truth, lowest, axis=1)
    held = (lo <= truth) & (truth <= hi)
    error = np.sqrt(((value - truth) ** 2).mean())
    return tuple(100 * float(x) for x in (error, worst.mean(), held.mean(), (hi - lo).mean(), held[:, -1].mean()))  # type: ignore[return-value]


def _differences(
    rng: np.random.Generator, n: np.ndarray, mean: float, spread: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True differences of slices, and what `slice_differences` gives of them; of slices with ten topics or more."""
    kept = n >= 10
    true = np.clip(rng.normal(mean, spread, len(n)), -0.4, 0.4)
    drawn = [rng.choice([1, -1, 0], size, p=[0.2 + d / 2, 0.2 - d / 2, 0.6]) for d, size in zip(true, n, strict=True)]
    difference = np.concatenate(drawn)
    both = rng.random(len(difference)) < 0.5
    first = np.where(difference == 0, both, difference > 0)
    parts = [
        pd.DataFrame(
            {
                "qid": np.arange(len(difference)),
                "system": system,
                "ir_score": np.nan,
                "label": pd.array(np.where(right, 5, 1), dtype="Int8"),
                "slice:kind": np.repeat([f"s{i:02}" for i in range(len(n))], n),
            }
        )
        for system, right in (("a", first), ("b", first - difference == 1))
    ]
    rows = slice_differences(pd.concat(parts, ignore_index=True), "a", "b")
    rows = rows[rows["measure"] == "correct"].sort_values("slice")
    alone, shrunk = rows[["difference", "lo", "hi"]], rows[["shrunk", "shrunk_lo", "shrunk_hi"]]
    return true[kept], alone.to_numpy(dtype=float).T, shrunk.to_numpy(dtype=float).T
