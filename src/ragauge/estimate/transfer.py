"""Does the predictor hold where it was not fitted? Each group's class shares, predicted from the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.estimate.intervals import LEVEL, Estimate, percentile_interval, topic_weights
from ragauge.estimate.outcomes import (
    CLASSES,
    RIGHT,
    check_outcomes,
    class_indicators,
    labels_of,
    topic_codes,
)
from ragauge.estimate.predictor import fit_predictor


@dataclass(frozen=True)
class Transfer:
    """Predicted against judged class shares of groups that the predictor had not seen.

    `table`: [group, n_tokens (0 where pooled), class, predicted, judged, difference, lo, hi, n]: difference
    is predicted less judged, lo and hi its interval over topics, n the group's rows. `mean_absolute_error`:
    of the differences; `mean_absolute_error_base`: the same where every group is predicted the class shares
    of the others. `kendall_tau`: rank correlation (tau-b) between the predicted and the judged order of the
    groups by correct share, a mean over n_tokens where these are apart; NaN where one side ties throughout.
    With fewer than two groups that have labels the table is empty and the numbers are NaN.
    """

    by: str
    table: pd.DataFrame
    mean_absolute_error: Estimate
    mean_absolute_error_base: Estimate
    kendall_tau: Estimate
    n_missing: int


def leave_one_out(
    frame: pd.DataFrame,
    by: str = "retriever",
    features: Sequence[str] = ("ir_score",),
    spline: bool = False,
    calibrate: bool = False,
    penalty: float = 1.0,
    at: Literal["pooled", "n_tokens"] = "pooled",
    n_boot: int = 1000,
    seed: int = 0,
    level: float = LEVEL,
) -> Transfer:
    """How well a predictor fitted on all other groups predicts each group's class shares.

    `by` is the column that is left out (`retriever`, `dataset`, `chunker`, `llm`). A predicted share is the
    mean of predict_proba over the group's rows. Both shares are over the rows that have a label, since a
    predictor knows no missing verdicts; the rest is counted. Intervals resample the topics and hold the fits
    fixed. Raises DataError on a bad row.
    """
    if at not in ("pooled", "n_tokens"):
        raise DataError(f"at={at!r}; allowed are 'pooled' and 'n_tokens'")
    check_outcomes(frame, features, ("qid", by, *(["n_tokens"] if at == "n_tokens" else [])))
    labels = labels_of(frame)
    rows = frame.loc[labels > 0].reset_index(drop=True)
    truth = class_indicators(labels[labels > 0])
    groups, names = pd.factorize(rows[by], sort=True)
    predicted, base = np.empty_like(truth), np.empty_like(truth)
    if len(names) >= 2:
        for number in range(len(names)):
            out = groups == number
            model = fit_predictor(rows.loc[~out], features, spline, calibrate, penalty, seed)
            predicted[out] = model.predict_proba(rows.loc[out])
            base[out] = truth[~out].mean(axis=0)
    return _compare(
        rows, by, groups, names, predicted, base, truth, at, n_boot, seed, level, int((labels == 0).sum())
    )


def _compare(
    rows: pd.DataFrame,
    by: str,
    groups: np.ndarray,
    names: pd.Index,
    predicted: np.ndarray,
    base: np.ndarray,
    truth: np.ndarray,
    at: str,
    n_boot: int,
    seed: int,
    level: float,
    n_missing: int,
) -> Transfer:
    columns = ["group", "n_tokens", "class", "predicted", "judged", "difference", "lo", "hi", "n"]
    topics, n_topics = topic_codes(rows["qid"])
    if len(names) < 2:
        nothing = Estimate(float("nan"), float("nan"), float("nan"), n_topics, level)
        return Transfer(by, pd.DataFrame(columns=columns), nothing, nothing, nothing, n_missing)
    budgets, budget_names = (
        pd.factorize(rows["n_tokens"], sort=True) if at == "n_tokens" else (np.zeros(len(rows), int), [0])
    )
    cells = budgets * len(names) + groups
    n_cells = len(budget_names) * len(names)
    k = len(CLASSES)
    # Of each topic and cell: the rows, and per class the sums of predicted, base and truth.
    values = np.column_stack([np.ones(len(rows)), predicted, base, truth])
    where = topics * n_cells + cells
    sums = np.column_stack([np.bincount(where, v, minlength=n_topics * n_cells) for v in values.T])
    sums = sums.reshape(n_topics, n_cells * values.shape[1])

    def shares(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Predicted, base and judged [replicates, cells, classes]; NaN for a cell that no drawn topic has."""
        total = (weights @ sums).reshape(len(weights), n_cells, values.shape[1])
        n = total[:, :, :1]
        mean = np.divide(total[:, :, 1:], n, out=np.full_like(total[:, :, 1:], np.nan), where=n > 0)
        return mean[:, :, :k], mean[:, :, k : 2 * k], mean[:, :, 2 * k :]

    def summary(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Differences [replicates, cells, classes]; error, its base and tau [replicates, 3]."""
        ours, theirs, judged = shares(weights)
        by_budget = (len(weights), len(budget_names), len(names))
        tau = _kendall_tau(
            ours[:, :, RIGHT - 1].reshape(by_budget), judged[:, :, RIGHT - 1].reshape(by_budget)
        ).mean(axis=1)
        errors = [np.abs(p - judged).mean(axis=(1, 2)) for p in (ours, theirs)]
        return ours - judged, np.column_stack([*errors, tau])

    once = np.ones((1, n_topics), dtype=np.int32)
    (ours,), _, (judged,) = shares(once)
    difference, numbers = summary(once)
    differences, replicates = np.full((1, n_cells, k), np.nan), np.full((1, 3), np.nan)
    if n_topics > 1 and n_boot:
        blocks = [summary(w) for w in topic_weights(n_topics, n_boot, seed, width=n_cells * values.shape[1])]
        differences, replicates = (np.concatenate(part) for part in zip(*blocks, strict=True))
    limits = [
        percentile_interval(differences[:, cell, c], level) for cell in range(n_cells) for c in range(k)
    ]
    table = pd.DataFrame(
        {
            "group": np.tile(np.repeat(np.asarray(names), k), len(budget_names)),
            "n_tokens": np.repeat(np.asarray(budget_names), len(names) * k),
            "class": np.tile(CLASSES, n_cells),
            "predicted": ours.ravel(),
            "judged": judged.ravel(),
            "difference": difference.ravel(),
            "lo": [lo for lo, _ in limits],
            "hi": [hi for _, hi in limits],
            "n": np.repeat(np.bincount(cells, minlength=n_cells), k),
        }
    )
    intervals = [percentile_interval(replicates[:, i], level) for i in range(3)]
    for i in range(2):
        # Noise only ever adds to a mean of absolute errors: resamples lie above it, at worst all of them.
        intervals[i] = (min(intervals[i][0], float(numbers[0, i])), intervals[i][1])
    error, error_base, tau = (
        Estimate(float(numbers[0, i]), *intervals[i], n_topics, level) for i in range(3)
    )
    return Transfer(by, table[columns], error, error_base, tau, n_missing)


def _kendall_tau(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Kendall's tau-b along the last axis; NaN where one side is constant or not known.

    Concordant less discordant pairs over the geometric mean of the pairs untied in x and in y (Kendall 1945).
    """
    a, b = np.triu_indices(x.shape[-1], k=1)
    dx, dy = np.sign(x[..., a] - x[..., b]), np.sign(y[..., a] - y[..., b])
    room = np.sqrt((dx**2).sum(axis=-1) * (dy**2).sum(axis=-1))
    return np.divide((dx * dy).sum(axis=-1), room, out=np.full(room.shape, np.nan), where=room > 0)
