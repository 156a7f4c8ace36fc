"""The AUC that a measure adds to the IR score."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragauge.estimate.outcomes import topic_folds

_FOLDS = 5


def added(
    rows: pd.DataFrame, ir_score: str, measure: str, sign: int, group: str, df: float, level: float, seed: int
) -> tuple[float, float, float]:
    """(gain, lo, hi) of the AUC for right answers by a measure beside the IR score; NaN if undefined.

    rows: [ir_score, measure, group, _right, _topic, _weight], none of them missing. Both together are P(right) of a
    logistic regression of the two, each standardised within a system, foreseen for topics (`_topic`) that it was not
    fitted on: five folds. So a measure that says nothing new loses a little. Both AUCs are of pairs within a system
    and a fold, since two folds have fits of their own. The interval is Student's with `df` degrees of freedom over
    topics. Its error comes from the placement values of the answers (DeLong, DeLong & Clarke-Pearson 1988; for
    clusters Obuchowski 1997). The fitted values are taken as they are.
    """
    from scipy.special import stdtrit

    right, topic = rows["_right"].to_numpy(dtype=bool), rows["_topic"].to_numpy()
    alone, weight = rows[ir_score].to_numpy(dtype=float), rows["_weight"].to_numpy(dtype=float)
    fold = topic_folds(topic, int(topic.max()) + 1, _FOLDS, seed)
    both = _foreseen(np.column_stack([_scaled(rows, ir_score, group), sign * _scaled(rows, measure, group)]),
                     right, fold, weight)  # fmt: skip
    if both is None:
        return float("nan"), float("nan"), float("nan")
    among = pd.factorize(rows[group])[0] * _FOLDS + fold
    (auc, parts), (auc_alone, parts_alone) = (_placed(x, right, among, weight) for x in (both, alone))
    error = float(np.sqrt((np.bincount(topic, parts - parts_alone) ** 2).sum()))
    reach = float(stdtrit(df, (1 + level) / 2)) * error
    return auc - auc_alone, auc - auc_alone - reach, auc - auc_alone + reach


def _scaled(rows: pd.DataFrame, name: str, group: str) -> np.ndarray:
    """A column standardised within each system; 0 if all values are equal."""
    of = rows.groupby(group)[name]
    spread = of.transform("std", ddof=0).to_numpy(dtype=float)
    apart = (rows[name] - of.transform("mean")).to_numpy(dtype=float)
    return np.divide(apart, spread, out=np.zeros(len(rows)), where=spread > 1e-12)


def _foreseen(x: np.ndarray, right: np.ndarray, fold: np.ndarray, weight: np.ndarray) -> np.ndarray | None:
    """The log odds of right for every row, by a fit on topics of other folds; None if a fold's fit has one class."""
    from sklearn.linear_model import LogisticRegression

    found = np.empty(len(x))
    for held in range(_FOLDS):
        out = fold == held
        if len(np.unique(right[~out])) < 2:
            return None
        model = LogisticRegression().fit(x[~out], right[~out], sample_weight=weight[~out])
        found[out] = model.decision_function(x[out]) if out.any() else 0.0
    return found


def _placed(values: np.ndarray, right: np.ndarray, among: np.ndarray, weight: np.ndarray) -> tuple[float, np.ndarray]:
    """The AUC within groups (int, `among`), and every row's contribution to its error.

    The squares of the parts' sums over topics add up to the variance. NaN where no group has both classes.
    """
    won, of = np.zeros(len(values)), np.zeros(len(values))
    for g in np.unique(among):
        rows = [np.flatnonzero((among == g) & (right == one)) for one in (True, False)]
        for own, other, is_right in ((rows[0], rows[1], True), (rows[1], rows[0], False)):
            below = _below(values[own], values[other], weight[other])
            whole = float(weight[other].sum())
            won[own] = below if is_right else whole - below
            of[own] = whole
    pairs = float((weight * of)[right].sum())
    if pairs == 0:
        return float("nan"), np.full(len(values), np.nan)
    auc = float((weight * won)[right].sum() / pairs)
    return auc, weight * (won - auc * of) / pairs


def _below(values: np.ndarray, others: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The weight of the smaller others for each value, plus half of that of ties."""
    order = np.argsort(others, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(weight[order])])
    low, high = (np.searchsorted(others[order], values, side) for side in ("left", "right"))
    return (total[low] + total[high]) / 2
