"""Transfer to a retriever that the predictor has not seen: its error, its intervals, and perfect transfer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from ragauge.estimate import fit_predictor
from ragauge.plugins.transfer.measured import leave_one_out

_RETRIEVERS = ("a", "b", "c")


def retrieved(n: int, spread: float, lift: float, rng: np.random.Generator) -> pd.DataFrame:
    """Outcomes of three retrievers on n topics: lack where the score is low, right where it is high.

    A topic makes right answers of all three likelier or less likely, with a standard deviation of `spread`
    logits; `lift` logits are what the last retriever has above its score.
    """
    easy = rng.normal(0, spread, n)
    parts = []
    for number, retriever in enumerate(_RETRIEVERS):
        score = rng.beta(1 + number / 2, 1.5, n)
        right = -1 + 3 * score + easy + lift * (number == 2)
        odds = np.exp(np.column_stack([1.5 - 4 * score, np.zeros(n), right]))
        drawn = (rng.random(n)[:, None] * odds.sum(axis=1, keepdims=True) > odds.cumsum(axis=1)).sum(axis=1)
        label = pd.array(np.array([1, 4, 5])[drawn], dtype="Int8")
        qid = np.arange(n).astype(str)
        parts.append(pd.DataFrame({"qid": qid, "retriever": retriever, "ir_score": score, "label": label}))
    return pd.concat(parts, ignore_index=True)


def differences(fitted: pd.DataFrame, judged: pd.DataFrame) -> np.ndarray:
    """float64 [3, 5]: predicted less judged shares of each retriever, fitted on the others."""
    found = []
    for retriever in _RETRIEVERS:
        rows = judged[judged["retriever"] == retriever]
        p = fit_predictor(fitted[fitted["retriever"] != retriever]).predict_proba(rows)
        label = rows["label"].to_numpy(dtype=int)
        found.append(p.mean(axis=0) - (label[:, None] == np.arange(1, 6)).mean(axis=0))
    return np.array(found)


@dataclass(frozen=True)
class Transferred:
    """Means over the data sets: the error told, that with the topics in the fit, that on as many new topics,
    and that told for perfect transfer; how often intervals of differences hold the true difference, and that
    of the error the error on new topics.
    """

    told: float
    same_topics: float
    new_topics: float
    perfect: float
    differences_covered: float
    error_covered: float


@lru_cache
def transferred(
    n: int, spread: float, lift: float, trials: int, seed: int, n_boot: int = 200, spline: bool = False
) -> Transferred:
    """`leave_one_out` on n topics, beside what the same fits do on n topics of their own."""
    rng = np.random.default_rng(seed)
    many = [[retrieved(8000, spread, lift, rng) for _ in "ab"] for _ in "abc"]
    true = np.mean([differences(*pair) for pair in many], axis=0)
    numbers, covered, intervals = [], [], []
    for trial in range(trials):
        frame = retrieved(n, spread, lift, rng)
        found = leave_one_out(frame, spline=spline, n_boot=n_boot, seed=trial)
        error = found.mean_absolute_error
        new = np.abs(differences(frame, retrieved(n, spread, lift, rng))).mean()
        same = np.abs(differences(frame, frame)).mean()
        numbers.append((error.value, same, new, found.mean_absolute_error_perfect))
        happens = np.isin(found.table["class"], (1, 4, 5))  # the others have no width and no difference
        lo, hi = found.table["lo"].to_numpy()[happens], found.table["hi"].to_numpy()[happens]
        at = true.ravel()[happens]
        covered.append(np.mean((lo <= at) & (at <= hi)))
        intervals.append((error.lo, error.hi))
    told, same, new, perfect = np.mean(numbers, axis=0)
    lo, hi = np.array(intervals).T
    inside = np.mean((lo <= new) & (new <= hi))
    return Transferred(told, same, new, perfect, float(np.mean(covered)), float(inside))
