"""What a predictor and the thresholds, fitted on judged systems, say of systems that nobody judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ragauge.estimate.outcomes import LACK, RIGHT, check_outcomes, labels_of
from ragauge.estimate.predictor import fit_predictor

SHARES = ("right", "between", "lack")  # class 5, classes 2 to 4, class 1
METHODS = ("predictor", "thresholds", "unchanged")


def foresee(
    judged: pd.DataFrame,
    others: pd.DataFrame,
    h: float,
    k: float,
    known: Mapping[str, Sequence[float]],
    features: Sequence[str] = ("ir_score",),
    spline: bool = False,
    calibrate: bool = False,
    seed: int = 0,
) -> pd.DataFrame:
    """The class shares of every system of `others`, foreseen from the rows of `judged`.

    Both have `qid` and the features; `judged` has `label`, `others` has `system`. Returns [system, share,
    predictor, thresholds, unchanged, judged, n], three rows a system: `right` (class 5), `between` (2 to 4)
    and `lack` (1). predictor: the mean of P(class | features) over the system's rows. thresholds: the share
    of scores above k, between, and below h. unchanged: the share among the judged rows. judged: the share
    that is `known` of the system from elsewhere (classes 1 to 5), NaN where none is.
    """
    check_outcomes(others, features, ("qid", "system"), labels=False)
    labels = labels_of(check_outcomes(judged, features))
    labels = labels[labels > 0]
    model = fit_predictor(judged, features, spline, calibrate, seed=seed)
    unchanged = _three([(labels == c).mean() for c in range(1, 6)])
    rows = []
    for system, part in others.groupby("system", sort=False):
        predicted = _three(model.predict_proba(part).mean(axis=0))
        scores = part["ir_score"].to_numpy(dtype=float)
        above = (scores > k).mean()
        below = ((scores < h) & ~(scores > k)).mean()
        shares = _three(known[str(system)]) if system in known else [float("nan")] * 3
        said = (above, 1 - above - below, below)
        for name, values in zip(SHARES, zip(predicted, said, unchanged, shares, strict=True), strict=True):
            rows.append((system, name, *map(float, values), len(part)))
    return pd.DataFrame(rows, columns=["system", "share", *METHODS, "judged", "n"])


def foreseen_errors(table: pd.DataFrame) -> dict[str, float]:
    """Mean absolute errors of a table of `foresee`: `unjudged_<share>_mae_<method>`, over systems whose
    shares are known; {} where none are.
    """
    known = table[table["judged"].notna()]
    return {
        f"unjudged_{share}_mae_{method}": float((rows[method] - rows["judged"]).abs().mean())
        for share, rows in known.groupby("share", sort=False)
        if share != "between"
        for method in METHODS
    }


def _three(shares: Sequence[float] | np.ndarray) -> list[float]:
    """Right, between and lack of the shares of classes 1 to 5."""
    right, lack = float(shares[RIGHT - 1]), float(shares[LACK - 1])
    return [right, float(sum(shares)) - right - lack, lack]
