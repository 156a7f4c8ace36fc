"""The predictor P(judge class | IR score): multinomial logistic regression of judged rows.

`ragauge.estimate.validation` validates it on unseen topics.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.estimate.outcomes import CLASSES, check_outcomes, labels_of, topic_codes, units_of, weights_of

_NO_RANGE = 1e-9  # scores of a narrower range bend nothing


@dataclass(frozen=True)
class Predictor:
    """A fitted scikit-learn `model` (predict_proba over a DataFrame of `features`) and facts on its fit.

    A model that comes from elsewhere needs only `classes_` and `predict_proba`.
    """

    model: Any
    features: tuple[str, ...]
    n_topics: int
    n_rows: int
    n_missing: int

    @property
    def classes(self) -> tuple[int, ...]:
        """The model's judge classes; the others have probability 0."""
        return tuple(int(c) for c in self.model.classes_)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """P(1)..P(5), float64 [rows, 5], rows summing to 1; 0 for a class absent from the fit.

        Raises DataError where a feature is missing or not a finite number.
        """
        check_outcomes(frame, self.features, labels=False)
        probabilities = np.zeros((len(frame), len(CLASSES)))
        if len(frame):
            x = frame[list(self.features)].astype(float)
            probabilities[:, np.asarray(self.model.classes_, dtype=int) - 1] = self.model.predict_proba(x)
        return probabilities


def row_weights(frame: pd.DataFrame) -> np.ndarray | None:
    """`weights_of` the frame, float64 [rows]; None without a column `weight`.

    Raises DataError where a weight is not a finite number above 0.
    """
    if "weight" not in frame:
        return None
    check_outcomes(frame, ("weight",), labels=False)
    weights = weights_of(frame)
    if (weights <= 0).any():
        row = int(np.flatnonzero(weights <= 0)[0])
        raise DataError(f"outcomes: column weight, row {row}: {weights[row]} is not a number above 0")
    return weights


def _knots(scores: np.ndarray) -> np.ndarray:
    """Lowest and highest score and the quartiles of distinct scores between, float64 [5].

    Distinct to a hundredth of the range: many topics score exactly 0 or 1, and knots must differ. At
    quartiles every function of the basis has scores where it is not 0 (Schoenberg & Whitney 1953), so that
    none is fitted where there is nothing to fit.
    """
    low, high = scores.min(), scores.max()
    distinct = np.unique(np.round((scores - low) / (high - low), 2))
    return np.asarray(low + (high - low) * np.quantile(distinct, [0, 0.25, 0.5, 0.75, 1]))


def _estimator(x: pd.DataFrame, spline: bool, penalty: float, n_classes: int) -> Any:
    """An unfitted scikit-learn estimator; a constant one for a single class."""
    from sklearn.compose import ColumnTransformer
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer, StandardScaler

    if n_classes < 2:
        return DummyClassifier(strategy="prior")
    curved = ["ir_score"] if spline and np.ptp(x["ir_score"].to_numpy()) > _NO_RANGE else []
    plain = [f for f in x.columns if f not in curved]
    knots = _knots(x["ir_score"].to_numpy())[:, None] if curved else "uniform"
    # Beyond the outer knots the basis keeps its values: scores are clipped to the range of the fit.
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

    Multinomial logistic regression on standardised `features` (numeric columns of the frame), with an L2 penalty of
    `penalty` / 2 times the squared coefficients. `spline` takes the IR score as a cubic B-spline with knots at the ends
    and the quartiles of the distinct scores, constant outside of them. Without it the logit goes on as a straight line.
    `calibrate` maps P(5) by isotonic regression fitted on out-of-fold probabilities, nested by topic (`seed` makes the
    folds). A row of `weight` 2 counts as two. One class
    only: that class has probability 1. The model's `feature_range_` is {feature: (lowest, highest value)} of
    the rows with a label. Raises DataError on a bad row, and where no row has a label.
    """
    if spline and "ir_score" not in features:
        raise DataError(f"spline=True bends ir_score, which is not among the features {', '.join(features)}")
    check_outcomes(frame, features)
    weights = row_weights(frame)
    x = frame[list(features)].astype(float)
    labels = labels_of(frame)
    known = labels > 0
    if not known.any():
        raise DataError(f"no label among {len(frame)} outcomes: a predictor needs judged rows")
    x, y = x.loc[known], labels[known]
    weights = None if weights is None else weights[known]
    topics, n_topics = topic_codes(units_of(frame)[known])[0], frame["qid"][known].nunique()
    model = _estimator(x, spline, penalty, len(np.unique(y)))
    with warnings.catch_warnings():
        # On a handful of rows a Newton step may give way to L-BFGS, which ends at the same optimum.
        warnings.filterwarnings("ignore", message="Line search of Newton solver")
        from ragauge.estimate._calibration import RightCalibrated, fitted

        if calibrate:
            model = RightCalibrated(model, seed=seed).fit(x, y, topics, weights)
        else:
            model = fitted(model, x, y, weights)
    model.feature_range_ = {f: (float(x[f].min()), float(x[f].max())) for f in features}
    return Predictor(model, tuple(features), n_topics, int(known.sum()), int((~known).sum()))
