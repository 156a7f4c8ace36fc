"""The predictor P(judge class | IR score): multinomial logistic regression, and how it does on unseen topics.

Cross-validation keeps all rows of a topic in one fold, and every measure stands beside that of the base-rate
model, which gives each row the class shares of the training folds.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.estimate.intervals import LEVEL, Estimate, percentile_interval, topic_weights
from ragauge.estimate.outcomes import (
    CLASSES,
    GROUP_COLUMNS,
    LACK,
    RIGHT,
    check_outcomes,
    class_indicators,
    labels_of,
    topic_codes,
)

PROBABILITY_COLUMNS = tuple(f"p{c}" for c in CLASSES)
CLIP = 1e-6  # a probability under it counts as it in the log loss, so that one row costs at most 13.8
ECE_BINS = 10
_SPLINE_KNOTS = 5


@dataclass(frozen=True)
class Predictor:
    """A fitted scikit-learn `model` (predict_proba over a DataFrame of `features`) and what it was fitted on.

    A model that comes from elsewhere needs only `classes_` and `predict_proba`.
    """

    model: Any
    features: tuple[str, ...]
    n_topics: int
    n_rows: int
    n_missing: int

    @property
    def classes(self) -> tuple[int, ...]:
        """The judge classes that the model knows; the others have probability 0."""
        return tuple(int(c) for c in self.model.classes_)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """float64 [rows, 5]: P(1)..P(5), rows summing to 1; 0 for a class that was absent from the fit.

        Raises DataError where a feature is missing or not a finite number.
        """
        check_outcomes(frame, self.features, labels=False)
        probabilities = np.zeros((len(frame), len(CLASSES)))
        if len(frame):
            x = frame[list(self.features)].astype(float)
            probabilities[:, np.asarray(self.model.classes_, dtype=int) - 1] = self.model.predict_proba(x)
        return probabilities


def _estimator(features: Sequence[str], spline: bool, penalty: float, n_classes: int) -> Any:
    """An unfitted scikit-learn estimator; the class shares themselves where there is one class only."""
    from sklearn.compose import ColumnTransformer
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer, StandardScaler

    if n_classes < 2:
        return DummyClassifier(strategy="prior")
    curved = ["ir_score"] if spline else []
    plain = [f for f in features if f not in curved]
    # Knots stand at fixed scores, not at quantiles: many topics score exactly 0 or 1, and knots must differ.
    knots = np.linspace(0, 1, _SPLINE_KNOTS)[:, None]
    columns = ColumnTransformer(
        [
            ("spline", SplineTransformer(degree=3, knots=knots, include_bias=False), curved),
            ("plain", "passthrough", plain),
        ]
    )
    # 1 / C is the L2 penalty on standardised columns. Newton steps: a spline takes L-BFGS far longer.
    classifier = LogisticRegression(C=1 / penalty, solver="newton-cholesky", max_iter=200)
    return make_pipeline(columns, StandardScaler(), classifier)


def fit_predictor(
    frame: pd.DataFrame,
    features: Sequence[str] = ("ir_score",),
    spline: bool = False,
    calibrate: bool = False,
    penalty: float = 1.0,
    seed: int = 0,
) -> Predictor:
    """P(class | features) fitted on the rows that have a label; rows without one are counted.

    Multinomial logistic regression on standardised `features` (numeric columns of the frame) with an L2
    penalty of `penalty` / 2 times the squared coefficients; `spline` takes the IR score as a cubic B-spline
    with knots at 0, 1/4, 1/2, 3/4 and 1; `calibrate` maps P(5) by isotonic regression fitted on out-of-fold
    probabilities, nested by topic (`seed` makes the folds). One class only: that class has probability 1.
    Raises DataError on a bad row, and where no row has a label.
    """
    if spline and "ir_score" not in features:
        raise DataError(f"spline=True bends ir_score, which is not among the features {', '.join(features)}")
    check_outcomes(frame, features)
    x = frame[list(features)].astype(float)
    labels = labels_of(frame)
    known = labels > 0
    if not known.any():
        raise DataError(f"no label among {len(frame)} outcomes: a predictor needs judged rows")
    x, y = x.loc[known], labels[known]
    topics, n_topics = topic_codes(frame["qid"].to_numpy()[known])
    model = _estimator(features, spline, penalty, len(np.unique(y)))
    with warnings.catch_warnings():
        # On a handful of rows a Newton step may give way to L-BFGS, which ends at the same optimum.
        warnings.filterwarnings("ignore", message="Line search of Newton solver")
        if calibrate:
            from ragauge.estimate._calibration import RightCalibrated

            model = RightCalibrated(model, seed=seed).fit(x, y, topics)
        else:
            model = model.fit(x, y)
    return Predictor(model, tuple(features), n_topics, int(known.sum()), int((~known).sum()))


@dataclass(frozen=True)
class CrossValidation:
    """How the predictor does on topics it has not seen.

    `estimates`: by name `log_loss`, `brier`, `auc_correct`, `auc_lack`, `ece`, `log_loss_base`, `brier_base`,
    each with its bootstrap interval over topics. The interval is about these fits on other topics, not about
    what a predictor fitted on other topics would reach. `out_of_fold`: qid and the columns
    that group rows, `label`, `p1`..`p5`, `fold`, a row for every labelled outcome. `reliability`: see
    `reliability_curve`.
    """

    estimates: dict[str, Estimate]
    out_of_fold: pd.DataFrame
    reliability: pd.DataFrame
    n_splits: int
    n_topics: int
    n_missing: int

    def metrics(self) -> dict[str, float]:
        """The values by metric name, `predictor_` before each."""
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
    """Out-of-fold probabilities with whole topics in one fold, and their measures beside the base rate.

    log_loss: natural log, probabilities clipped to [1e-6, 1]. brier: sum over the five classes of the squared
    error, 0 to 2. auc_correct, auc_lack: of P(5) for class 5, of P(1) for class 1, over pairs of rows of one
    fold; NaN where no fold has rows with that class and without. ece: of P(5), ten bins of equal width,
    weighted by rows. With fewer topics than n_splits each topic is a fold; with fewer than two every measure
    is NaN. A class that a training fold lacks has probability 0 there.
    """
    check_outcomes(frame, features)
    labels = labels_of(frame)
    known = labels > 0
    rows = frame.loc[known].reset_index(drop=True)
    y = labels[known]
    topics, n_topics = topic_codes(rows["qid"])
    splits = min(n_splits, n_topics)
    probabilities = np.full((len(y), len(CLASSES)), np.nan)
    base = np.full((len(y), len(CLASSES)), np.nan)
    fold = np.zeros(len(y), dtype=int)
    if splits >= 2:
        from sklearn.model_selection import GroupKFold

        folds = GroupKFold(splits, shuffle=True, random_state=seed).split(rows, y, topics)
        for number, (train, test) in enumerate(folds):
            model = fit_predictor(rows.iloc[train], features, spline, calibrate, penalty, seed)
            probabilities[test] = model.predict_proba(rows.iloc[test])
            base[test] = class_indicators(y[train]).mean(axis=0)
            fold[test] = number
    keys = [c for c in ("qid", *GROUP_COLUMNS) if c in rows.columns]
    predicted = dict(zip(PROBABILITY_COLUMNS, probabilities.T, strict=True))
    out_of_fold = rows[keys].assign(label=rows["label"].astype("Int8"), **predicted, fold=fold)
    if splits < 2:
        estimates = {
            name: Estimate(float("nan"), float("nan"), float("nan"), n_topics, level)
            for name in (*_LOSSES, "auc_correct", "auc_lack", "ece")
        }
        curve = reliability_curve(np.empty(0), np.empty(0))
    else:
        estimates = _estimates(probabilities, base, y, topics, fold, n_topics, n_boot, seed, level)
        curve = reliability_curve(probabilities[:, RIGHT - 1], y == RIGHT)
    missing = int((~known).sum())
    return CrossValidation(estimates, out_of_fold, curve, splits if splits >= 2 else 0, n_topics, missing)


_LOSSES = ("log_loss", "brier", "log_loss_base", "brier_base")


def _estimates(
    probabilities: np.ndarray,
    base: np.ndarray,
    y: np.ndarray,
    topics: np.ndarray,
    fold: np.ndarray,
    n_topics: int,
    n_boot: int,
    seed: int,
    level: float,
) -> dict[str, Estimate]:
    truth = class_indicators(y)
    losses = np.column_stack(
        [
            _log_loss(probabilities, y),
            ((probabilities - truth) ** 2).sum(axis=1),
            _log_loss(base, y),
            ((base - truth) ** 2).sum(axis=1),
        ]
    )
    right, lack = probabilities[:, RIGHT - 1], probabilities[:, LACK - 1]
    gap = (y == RIGHT) - right
    in_bin = _bins(right)[:, None] == np.arange(ECE_BINS)
    # Of each topic: rows, sums of the four losses, and per bin the sum of observed less predicted.
    columns = np.column_stack([np.ones(len(y)), losses, in_bin * gap[:, None]])
    sums = np.column_stack([np.bincount(topics, column, minlength=n_topics) for column in columns.T])
    auc_correct = _Auc(right, y == RIGHT, topics, fold)
    auc_lack = _Auc(lack, y == LACK, topics, fold)

    def measures(weights: np.ndarray) -> np.ndarray:
        total = weights @ sums
        n = total[:, :1]
        ece = np.abs(total[:, 1 + len(_LOSSES) :]).sum(axis=1, keepdims=True) / n
        return np.column_stack(
            [total[:, 1 : 1 + len(_LOSSES)] / n, auc_correct(weights), auc_lack(weights), ece]
        )

    names = (*_LOSSES, "auc_correct", "auc_lack", "ece")
    value = measures(np.ones((1, n_topics), dtype=np.int32))[0]
    blocks = [measures(w) for w in topic_weights(n_topics, n_boot, seed, width=len(y))]
    replicates = np.vstack(blocks) if blocks else np.full((1, len(names)), np.nan)
    estimates = {}
    for i, name in enumerate(names):
        lo, hi = percentile_interval(replicates[:, i], level)
        if name == "ece":
            # Noise within a bin only ever adds to the ECE: resamples lie above it, at worst all of them.
            lo = min(lo, float(value[i]))
        estimates[name] = Estimate(float(value[i]), lo, hi, n_topics, level)
    return estimates


def _log_loss(probabilities: np.ndarray, y: np.ndarray) -> np.ndarray:
    """float64 [rows]: minus the natural log of the probability of each row's class, clipped to [1e-6, 1]."""
    return -np.log(np.clip(probabilities[np.arange(len(y)), y - 1], CLIP, 1))


class _Auc:
    """The area under the ROC curve for any weights of the topics, from one sort.

    The share of (positive, negative) pairs of one fold in which the positive one scores higher, ties counting
    half (Mann-Whitney). Pairs of two folds are left out: their scores come from two models, and the model
    that saw more positive rows, of which the fold left out then has fewer, scores higher.
    """

    def __init__(
        self, scores: np.ndarray, positive: np.ndarray, topics: np.ndarray, folds: np.ndarray | None = None
    ) -> None:
        folds = np.zeros(len(scores), dtype=int) if folds is None else folds
        order = np.lexsort((scores, folds))
        ranked, fold = scores[order], folds[order]
        new_fold = fold[1:] != fold[:-1]
        self.last = np.flatnonzero(np.append((ranked[1:] != ranked[:-1]) | new_fold, True))
        self.ends = np.flatnonzero(np.isin(self.last, np.flatnonzero(np.append(new_fold, True))))
        self.topic = topics[order]
        self.positive = positive[order].astype(np.int32)

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        """float64 [replicates]; NaN where no fold of a resample has both positive and negative rows."""
        drawn = weights[:, self.topic]
        positive = np.cumsum(drawn * self.positive, axis=1)[:, self.last].astype(float)
        negative = np.cumsum(drawn, axis=1)[:, self.last] - positive
        # Rows of the folds before do not count: their totals are taken off.
        starts, sizes = np.append(0, self.ends[:-1] + 1), np.diff(np.append(-1, self.ends))
        before = np.zeros((2, len(drawn), len(starts)))
        before[:, :, 1:] = np.stack([positive, negative])[:, :, self.ends[:-1]]
        of_fold = np.stack([positive, negative])[:, :, self.ends] - before
        below = np.concatenate([np.zeros((len(drawn), 1)), negative[:, :-1]], axis=1)
        less = np.repeat(before[1], sizes, axis=1)
        won = (np.diff(positive, axis=1, prepend=0.0) * ((below + negative) / 2 - less)).sum(axis=1)
        pairs = (of_fold[0] * of_fold[1]).sum(axis=1)
        return np.divide(won, pairs, out=np.full(len(won), np.nan), where=pairs > 0)


def _bins(probabilities: np.ndarray) -> np.ndarray:
    """int64 [rows]: the bin of equal width, 0..9; a probability of 1 is in the last."""
    return np.minimum((probabilities * ECE_BINS).astype(np.int64), ECE_BINS - 1)


def reliability_curve(predicted: np.ndarray, happened: np.ndarray) -> pd.DataFrame:
    """Predicted probability against observed frequency in ten bins of equal width.

    Returns [lo, hi, predicted, observed, n] a row per bin, in order; predicted and observed are means over
    the bin's n rows, NaN where it has none.
    """
    at = _bins(np.asarray(predicted, dtype=float))
    n = np.bincount(at, minlength=ECE_BINS)
    edges = np.linspace(0, 1, ECE_BINS + 1)

    def means(values: np.ndarray) -> np.ndarray:
        sums = np.bincount(at, np.asarray(values, dtype=float), minlength=ECE_BINS)
        return np.divide(sums, n, out=np.full(ECE_BINS, np.nan), where=n > 0)

    return pd.DataFrame(
        {
            "lo": edges[:-1],
            "hi": edges[1:],
            "predicted": means(predicted),
            "observed": means(happened),
            "n": n,
        }
    )
