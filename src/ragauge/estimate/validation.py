"""Cross-validates the predictor on unseen topics.

It keeps all rows of a topic in one fold. Every measure stands beside that of the base-rate model, which gives each
row the class shares of the training folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.outcomes import PROBABILITY_COLUMNS
from ragauge.estimate._scoring import Auc, CalibrationError, CalibrationLine, log_loss, reliability_curve
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
    GROUP_COLUMNS,
    LACK,
    RIGHT,
    check_outcomes,
    class_indicators,
    labels_of,
    topic_codes,
    units_of,
)
from ragauge.estimate.predictor import fit_predictor, row_weights


@dataclass(frozen=True)
class CrossValidation:
    """The predictor's performance on unseen topics.

    `estimates`: by name `log_loss`, `brier`, `auc_correct`, `auc_lack`, `ece`, `calibration_slope`,
    `calibration_intercept`, `log_loss_base`, `brier_base`, each with its bootstrap interval over topics. The
    fits are held fixed, but for losses over at most 20 clusters, which are left out in turn. An interval holds the mean
    over fits on as many topics more often than what these very fits reach on other topics (docs/method.md).
    `out_of_fold`: qid and the columns that group rows, `label`, `p1`..`p5`, `fold`, a row for every labelled outcome.
    `reliability`: see `reliability_curve`.
    """

    estimates: dict[str, Estimate]
    out_of_fold: pd.DataFrame
    reliability: pd.DataFrame
    n_splits: int
    n_topics: int
    n_missing: int

    def metrics(self) -> dict[str, float]:
        """The values by metric name, with the prefix `predictor_`."""
        return {f"predictor_{name}": estimate.value for name, estimate in self.estimates.items()}


def cross_validate(
    frame: pd.DataFrame,
    features: Sequence[str] = ("ir_score",),
    spline: bool = False,
    calibrate: bool = False,
    penalty: float = 1.0,
    n_splits: int = 5,
    seed: int = 0,
    n_boot: int = 1000,
    level: float = LEVEL,
) -> CrossValidation:
    """Out-of-fold probabilities with whole topics (or clusters) in one fold, and their measures beside the base rate.

    log_loss: natural log, probabilities clipped to [1e-6, 1]. brier: sum over the five classes of the squared
    error, 0 to 2. auc_correct, auc_lack: AUC of P(5) for class 5, of P(1) for class 1, over pairs of rows of one fold.
    NaN where no fold has rows with that class and without. ece: calibration error of P(5) in ten bins of equal width,
    see `CalibrationError`. calibration_slope, calibration_intercept: see `CalibrationLine`, on the logit of P(5). Every
    measure counts a row by its `weight`, where the frame has that column. With fewer topics than n_splits each topic is
    a fold; with fewer than two every measure is NaN. A class that a training fold lacks has probability 0 there.
    """
    check_outcomes(frame, features)
    weights = row_weights(frame)
    labels = labels_of(frame)
    known = labels > 0
    rows = frame.loc[known].reset_index(drop=True)
    y = labels[known]
    weights = None if weights is None else weights[known]
    topics, n_units = topic_codes(units_of(rows))
    splits, n_topics = min(n_splits, n_units), rows["qid"].nunique()
    probabilities = np.full((len(y), len(CLASSES)), np.nan)
    base = np.full((len(y), len(CLASSES)), np.nan)
    fold = np.zeros(len(y), dtype=int)
    if splits >= 2:
        from sklearn.model_selection import GroupKFold

        folds = GroupKFold(splits, shuffle=True, random_state=seed).split(rows, y, topics)
        for number, (train, test) in enumerate(folds):
            model = fit_predictor(rows.iloc[train], features, spline, calibrate, penalty, seed)
            probabilities[test] = model.predict_proba(rows.iloc[test])
            of_train = None if weights is None else weights[train]
            base[test] = mean_rows(class_indicators(y[train]), of_train)
            fold[test] = number
    keys = [c for c in ("qid", *GROUP_COLUMNS) if c in rows.columns]
    predicted = dict(zip(PROBABILITY_COLUMNS, probabilities.T, strict=True))
    out_of_fold = rows[keys].assign(label=rows["label"].astype("Int8"), **predicted, fold=fold)
    if splits < 2:
        estimates = {name: Estimate(float("nan"), float("nan"), float("nan"), n_topics, level) for name in _MEASURES}
        curve = reliability_curve(np.empty(0), np.empty(0))
    else:
        sizes = np.bincount(topics[~rows["qid"].duplicated().to_numpy()], minlength=n_units).astype(float)
        measured = _estimates(probabilities, base, y, topics, fold, sizes, weights, n_boot, seed, level)
        if n_boot and are_clusters(sizes, n_topics) and 2 < n_units <= _FEW_CLUSTERS:
            how = (features, spline, calibrate, penalty, n_splits, seed, 0)
            without = [cross_validate(rows[topics != unit], *how).estimates for unit in range(n_units)]
            for name in _MEASURES[:_LOSSES]:
                value, left_out = measured[name][0], np.array([one[name].value for one in without])
                reach = student_of(sizes, n_topics, level) * _jackknife_error(left_out)
                measured[name] = (value, float(value * np.exp(-reach)), float(value * np.exp(reach)))
        estimates = {name: Estimate(*numbers, n_topics, level) for name, numbers in measured.items()}
        curve = reliability_curve(probabilities[:, RIGHT - 1], y == RIGHT, weights)
    missing = int((~known).sum())
    return CrossValidation(estimates, out_of_fold, curve, splits if splits >= 2 else 0, n_topics, missing)


_LOSSES = 4  # of these are means of positive losses
_FEW_CLUSTERS = 20  # so many, or fewer, are left out in turn
_MEASURES = (
    *("log_loss", "brier", "log_loss_base", "brier_base", "auc_correct", "auc_lack"),
    *("ece", "calibration_slope", "calibration_intercept"),
)


def mean_rows(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The mean of the rows, weighted if weights are given, float64 [columns]."""
    return np.asarray(values.mean(axis=0) if weights is None else np.average(values, axis=0, weights=weights))


def _estimates(
    probabilities: np.ndarray,
    base: np.ndarray,
    y: np.ndarray,
    topics: np.ndarray,
    fold: np.ndarray,
    sizes: np.ndarray,
    row_weight: np.ndarray | None,
    n_boot: int,
    seed: int,
    level: float,
) -> dict[str, tuple[float, float, float]]:
    """Value and limits by name; `sizes` are the topics per cluster, 1 each without clusters."""
    n_topics, of_topics = len(sizes), int(sizes.sum())
    truth = class_indicators(y)
    weight = np.ones(len(y)) if row_weight is None else row_weight
    columns = np.column_stack(
        [
            np.ones(len(y)),
            log_loss(probabilities, y),
            ((probabilities - truth) ** 2).sum(axis=1),
            log_loss(base, y),
            ((base - truth) ** 2).sum(axis=1),
        ]
    )
    # Of each topic: rows and sums of the four losses.
    sums = np.column_stack([np.bincount(topics, c * weight, minlength=n_topics) for c in columns.T])
    right, lack = probabilities[:, RIGHT - 1], probabilities[:, LACK - 1]
    others = (
        Auc(right, y == RIGHT, topics, fold, row_weight),
        Auc(lack, y == LACK, topics, fold, row_weight),
        CalibrationError(right, y == RIGHT, topics, n_topics, weight),
        CalibrationLine(right, y == RIGHT, topics, n_topics, weight, fold),
    )

    def measures(weights: np.ndarray) -> np.ndarray:
        total = weights @ sums
        return np.column_stack([total[:, 1:] / total[:, :1], *(measure(weights) for measure in others)])

    value = measures(np.ones((1, n_topics), dtype=np.int32))[0]
    blocks = [measures(w) for w in topic_weights(n_topics, n_boot, seed, width=len(y))]
    replicates = np.vstack(blocks) if blocks else np.full((1, len(_MEASURES)), np.nan)
    reached = expanded(level, sizes, of_topics)
    limits = [percentile_interval(column, reached) for column in replicates.T]
    if n_boot and are_clusters(sizes, of_topics):
        limits[:_LOSSES] = [_loss_interval(sums[:, i + 1], sums[:, 0], sizes, level) for i in range(_LOSSES)]
    return {name: (float(value[i]), *limits[i]) for i, name in enumerate(_MEASURES)}


def _jackknife_error(left_out: np.ndarray) -> float:
    """Standard error of a loss's logarithm from the losses [clusters] without each (Efron & Tibshirani, ch. 11)."""
    logs = np.log(np.maximum(left_out, np.finfo(float).tiny))
    return float(logs.std() * np.sqrt(len(logs) - 1))


def _loss_interval(sums: np.ndarray, rows: np.ndarray, sizes: np.ndarray, level: float) -> tuple[float, float]:
    """Student's limits, on the log scale, of the ratio mean of a positive loss over clusters."""
    of_topics, mean = int(sizes.sum()), sums.sum() / rows.sum()
    residuals = without_own_part(sums - mean * rows, sizes, of_topics)
    reach = student_of(sizes, of_topics, level) * np.sqrt((residuals**2).sum()) / (rows.sum() * mean)
    return float(mean * np.exp(-reach)), float(mean * np.exp(reach))
