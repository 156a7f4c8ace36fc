"""Each group's class shares, as predicted from the other groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.estimate.intervals import (
    LEVEL,
    Estimate,
    are_clusters,
    expanded,
    percentile_interval,
    student_of,
    topic_weights,
    without_own_part,
)
from ragauge.estimate.outcomes import (
    CLASSES,
    RIGHT,
    check_outcomes,
    topic_codes,
    units_of,
)
from ragauge.plugins.transfer.refits import LeftOut, Options, judged_rows, predict_left_out

_COLUMNS = ["group", "n_tokens", "class", "predicted", "judged", "difference", "lo", "hi", "n"]


@dataclass(frozen=True)
class Transfer:
    """Predicted against judged class shares of groups unseen by the predictor.

    `table`: [group, n_tokens (0 where pooled), class, predicted, judged, difference, lo, hi, n]. difference is
    predicted less judged, lo and hi its interval over topics, fits included, n the group's rows. `mean_absolute_error`:
    the differences to expect on as many other topics (see `leave_one_out`). `mean_absolute_error_base`: the same where
    every group is predicted the class shares of the others. `mean_absolute_error_perfect`: the same if the true
    difference were 0 everywhere: the effect of sampling alone. `kendall_tau`: rank correlation (tau-b) between the
    predicted and the judged order of the groups by correct share. It is a mean over n_tokens where these are apart, and
    NaN where one side ties throughout. With fewer than two groups that have labels, or fewer than two topics, the table
    is empty and the numbers are NaN.
    """

    by: str
    table: pd.DataFrame
    mean_absolute_error: Estimate
    mean_absolute_error_base: Estimate
    kendall_tau: Estimate
    n_missing: int
    mean_absolute_error_perfect: float = float("nan")


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
    """How well a predictor fitted on other groups and topics predicts each group's class shares.

    `by` is the column that is left out (`retriever`, `dataset`, `chunker`, `llm`). Topics are in five folds. A row is
    predicted by a model of the other groups' rows in the other folds, and a predicted share is the mean of
    predict_proba over the group's rows. Both shares are over the rows that have a label, since a predictor knows no
    missing verdicts; the rest is counted. A row counts by its `weight`, where the frame has that column. Intervals
    resample the topics and move the fits with them, to first order.

    Over all folds the same topics make the fits and the judged shares. Where topics are easy by chance, they are so for
    both, and differences are smaller than on other topics. With fits and shares of different topics the variance is the
    sum of its two parts. So a normal difference with the missing part of that variance is added, which gives the error
    to expect on other topics. Where the frame has clusters, these take the place of topics, and the intervals of
    differences are Student's. Raises DataError on a bad row.
    """
    if at not in ("pooled", "n_tokens"):
        raise DataError(f"at={at!r}; allowed are 'pooled' and 'n_tokens'")
    check_outcomes(frame, features, ("qid", by, *(["n_tokens"] if at == "n_tokens" else [])))
    rows, truth, weights = judged_rows(frame)
    groups, names = pd.factorize(rows[by], sort=True)
    topics, n_topics = topic_codes(units_of(rows))
    n_missing = len(frame) - len(rows)
    if len(names) < 2 or n_topics < 2:
        nothing = Estimate(float("nan"), float("nan"), float("nan"), n_topics, level)
        return Transfer(by, pd.DataFrame(columns=_COLUMNS), nothing, nothing, nothing, n_missing)
    budgets, budget_names = (
        pd.factorize(rows["n_tokens"], sort=True) if at == "n_tokens" else (np.zeros(len(rows), int), [0])
    )
    # Of every topic 1, of a cluster its topics.
    sizes = np.bincount(topics[~rows["qid"].duplicated().to_numpy()], minlength=n_topics).astype(float)
    reached = expanded(level, sizes, int(sizes.sum()))
    # A cell without rows has no share: numbered are those that have some.
    where, cells = np.unique(budgets * len(names) + groups, return_inverse=True)
    options = Options(features, spline, calibrate, penalty, seed)
    left_out = predict_left_out(rows, truth, weights, topics, groups, cells, options)
    shares = _Shares(left_out, truth, weights, topics, sizes, cells, len(where))
    found = shares.of(np.ones((1, n_topics), dtype=np.int32))
    blocks = [shares.of(w) for w in topic_weights(n_topics, n_boot, seed, width=shares.width)]
    resampled = [np.concatenate(part) for part in zip(*(blocks or [_unknown(found)]), strict=True)]
    same, other = shares.variances(found)
    table = _table(found, resampled, level)
    if are_clusters(sizes, int(sizes.sum())):
        reach = student_of(sizes, int(sizes.sum()), level) * np.sqrt(same[0].ravel())
        table["lo"], table["hi"] = table["difference"] - reach, table["difference"] + reach
    budget, group = np.divmod(where, len(names))
    table.insert(0, "group", np.repeat(np.asarray(names)[group], len(CLASSES)))
    table.insert(1, "n_tokens", np.repeat(np.asarray(budget_names)[budget], len(CLASSES)))
    table["n"] = np.repeat(np.bincount(cells), len(CLASSES))
    error, error_base = (
        _error(found[i] - found[2], resampled[i] - resampled[2], same[i], other[i], n_topics, reached) for i in (0, 1)
    )
    tau, taus = (_mean_tau(p[0][..., RIGHT - 1], p[2][..., RIGHT - 1], budget) for p in (found, resampled))
    return Transfer(
        by,
        table[_COLUMNS],
        error,
        error_base,
        Estimate(float(tau[0]), *percentile_interval(taus, reached), n_topics, level),
        n_missing,
        float(_folded_mean(np.zeros(1), np.sqrt(np.maximum(same[0], other[0]))).mean()),
    )


def transfer_metrics(transfers: Mapping[str, Transfer]) -> dict[str, float]:
    """The error of predicted class shares of left-out groups against the judged ones, as metrics.

    Keys of `transfers` are what was left out; names begin with transfer_<it>, those of retrievers with
    transfer alone.
    """
    values: dict[str, float] = {}
    for by, moved in transfers.items():
        name = "transfer" if by == "retriever" else f"transfer_{by}"
        values |= {
            f"{name}_mae": moved.mean_absolute_error.value,
            f"{name}_mae_lo": moved.mean_absolute_error.lo,
            f"{name}_mae_hi": moved.mean_absolute_error.hi,
            f"{name}_mae_base": moved.mean_absolute_error_base.value,
            f"{name}_mae_perfect": moved.mean_absolute_error_perfect,
            f"{name}_kendall_tau": moved.kendall_tau.value,
        }
    return values


class _Shares:
    """Predicted, base and judged shares of every cell, for any weights of the topics."""

    def __init__(
        self,
        left_out: LeftOut,
        truth: np.ndarray,
        weights: np.ndarray,
        topics: np.ndarray,
        sizes: np.ndarray,
        cells: np.ndarray,
        n_cells: int,
    ) -> None:
        n_topics = len(sizes)
        columns = np.column_stack([np.ones(len(truth)), left_out.predicted, left_out.base, truth])
        where = topics * n_cells + cells
        sums = [np.bincount(where, c * weights, minlength=n_topics * n_cells) for c in columns.T]
        # Of each topic and cell: the rows, and per class the sums of predicted, base and truth.
        self.sums = np.column_stack(sums).reshape(n_topics, n_cells, columns.shape[1])
        self.moved = np.concatenate([left_out.moved, left_out.moved_base], axis=2)
        self.width = self.sums[0].size
        self.sizes = sizes  # topics of each topic or cluster

    def of(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Predicted, base and judged [replicates, cells, 5]; NaN for a cell without a drawn topic."""
        n_topics, k = len(self.sums), len(CLASSES)
        total = (weights @ self.sums.reshape(n_topics, -1)).reshape(len(weights), *self.sums.shape[1:])
        n = total[:, :, :1]
        mean = np.divide(total[:, :, 1:], n, out=np.full_like(total[:, :, 1:], np.nan), where=n > 0)
        # Every topic once is the fit itself: of a resample only what differs from that moves it.
        moved = ((weights - 1.0) @ self.moved.reshape(n_topics, -1)).reshape(len(weights), -1, 2 * k)
        mean[:, :, : 2 * k] += moved
        return mean[:, :, :k], mean[:, :, k : 2 * k], mean[:, :, 2 * k :]

    def variances(self, found: tuple[np.ndarray, ...]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Variances [cells, 5] of the differences of predicted (first) and base (second) from judged shares.

        Linearised over topics, or over clusters (`without_own_part`). `same`: fits and judged shares of the same
        topics; `other`: of different ones.
        """
        k, n_topics, total = len(CLASSES), len(self.sums), int(self.sizes.sum())
        n, truth = self.sums[:, :, :1], self.sums[:, :, 1 + 2 * k :]
        same, other = [], []
        for i in (0, 1):
            of_rows = self.sums[:, :, 1 + i * k : 1 + (i + 1) * k] - truth
            gap = (of_rows - n * (found[i][0] - found[2][0])) / n.sum(axis=0)
            fit = self.moved[:, :, i * k : (i + 1) * k]
            scale = 1.0 if are_clusters(self.sizes, total) else n_topics / (n_topics - 1)
            gap, fit = (without_own_part(part, self.sizes[:, None, None], total) for part in (gap, fit))
            same.append(((gap + fit) ** 2).sum(axis=0) * scale)
            other.append(((gap**2).sum(axis=0) + (fit**2).sum(axis=0)) * scale)
        return same, other


def _unknown(found: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    predicted, base, judged = (np.full_like(part, np.nan) for part in found)
    return predicted, base, judged


def _table(found: Sequence[np.ndarray], resampled: Sequence[np.ndarray], level: float) -> pd.DataFrame:
    """[class, predicted, judged, difference, lo, hi], a row per cell and class."""
    (predicted,), _, (judged,) = found
    differences = (resampled[0] - resampled[2]).reshape(len(resampled[0]), -1)
    limits = [percentile_interval(column, level) for column in differences.T]
    return pd.DataFrame(
        {
            "class": np.tile(CLASSES, len(predicted)),
            "predicted": predicted.ravel(),
            "judged": judged.ravel(),
            "difference": (predicted - judged).ravel(),
            "lo": [lo for lo, _ in limits],
            "hi": [hi for _, hi in limits],
        }
    )


def _error(
    difference: np.ndarray,
    resampled: np.ndarray,
    same: np.ndarray,
    other: np.ndarray,
    n_topics: int,
    level: float,
) -> Estimate:
    """The expected mean absolute error on other topics, from differences [1, cells, 5] on the same ones.

    Resamples add their noise to that of the differences, which raises a mean of absolute values: their
    interval is moved to have its middle at the estimate.
    """
    extra = np.sqrt(np.maximum(other - same, 0))
    value = float(_folded_mean(difference[0], extra).mean())
    folded = _folded_mean(resampled, extra).reshape(len(resampled), -1)
    known = ~np.isnan(folded)
    sums, n = np.where(known, folded, 0).sum(axis=1), known.sum(axis=1)
    replicates = np.divide(sums, n, out=np.full(len(folded), np.nan), where=n > 0)
    middle = replicates[n > 0].mean() if (n > 0).any() else 0.0
    lo, hi = percentile_interval(replicates - middle + value, level)
    return Estimate(value, float(np.maximum(lo, 0)), hi, n_topics, level)


def _folded_mean(mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """The mean of the absolute value of a normal variable (Leone, Nelson & Nottingham 1961)."""
    from scipy.special import erf

    z = np.divide(mean, sd, out=np.zeros(np.broadcast_shapes(mean.shape, sd.shape)), where=sd > 0)
    folded = sd * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + mean * erf(z / np.sqrt(2))
    return np.where(sd > 0, folded, np.abs(mean))


def _mean_tau(predicted: np.ndarray, judged: np.ndarray, budget: np.ndarray) -> np.ndarray:
    """float64 [replicates]: Kendall's tau of [replicates, cells], the mean over budgets [cells]."""
    of_budget = [_kendall_tau(predicted[:, budget == b], judged[:, budget == b]) for b in np.unique(budget)]
    return np.asarray(np.mean(of_budget, axis=0))


def _kendall_tau(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Kendall's tau-b along the last axis; NaN if one side is constant or unknown.

    Concordant less discordant pairs over the geometric mean of the pairs untied in x and in y (Kendall 1945).
    """
    a, b = np.triu_indices(x.shape[-1], k=1)
    dx, dy = np.sign(x[..., a] - x[..., b]), np.sign(y[..., a] - y[..., b])
    room = np.sqrt((dx**2).sum(axis=-1) * (dy**2).sum(axis=-1))
    return np.divide((dx * dy).sum(axis=-1), room, out=np.full(room.shape, np.nan), where=room > 0)
