"""Compares a window with a predictor's training data, by feature, and finds answers outside its range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp

from ragauge.estimate.pairs import holm
from ragauge.plugins.foresee.reference import Reference

MARGIN = 0.1  # of the range of a feature in the training, by which an answer may lie beyond it
ALPHA = 0.05


def drift(window: pd.DataFrame, reference: Reference, features: Sequence[str], seed: int = 0) -> pd.DataFrame:
    """Each feature of the window against the training: [feature, training_median, window_median, distance, p, p_holm].

    distance: Kolmogorov and Smirnov's, the largest difference of the two distribution functions, in [0, 1]. p: their
    two-sample test. Rows of a topic are no independent observations, so the seed draws one row of every training topic.
    p_holm: p after Holm's correction over the features.
    """
    once = reference.rows.sample(frac=1, random_state=seed).drop_duplicates("qid")
    rows: list[tuple[Any, ...]] = []
    for feature in features:
        then, now = once[feature].to_numpy(dtype=float), window[feature].to_numpy(dtype=float)
        found = ks_2samp(then, now)
        rows.append((feature, np.median(then), np.median(now), found.statistic, found.pvalue))
    table = pd.DataFrame(rows, columns=["feature", "training_median", "window_median", "distance", "p"])
    return table.assign(p_holm=holm(table["p"].to_numpy()))


def refusals(
    rows: pd.DataFrame, features: Sequence[str], ranges: Mapping[str, tuple[float, float]] | None
) -> pd.Series:
    """Why the predictor refuses a row: "" if it does not, else the features out of range or missing.

    Beyond: more than MARGIN of the feature's range in the training below or above that range.
    """
    why: list[list[str]] = [[] for _ in range(len(rows))]
    for feature in features:
        values = rows[feature].to_numpy(dtype=float)
        low, high = (ranges or {}).get(feature, (-np.inf, np.inf))
        slack = MARGIN * (high - low) if np.isfinite(high - low) else 0.0
        beyond = (values < low - slack - 1e-9) | (values > high + slack + 1e-9)
        for at in np.flatnonzero(np.isnan(values)):
            why[at].append(f"no {feature}")
        for at in np.flatnonzero(beyond):
            why[at].append(f"{feature} {values[at]:.3g}")
    return pd.Series([", ".join(of) for of in why], index=rows.index, dtype="str")
