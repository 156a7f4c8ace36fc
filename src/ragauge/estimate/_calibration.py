"""A scikit-learn classifier with P(right) calibrated isotonically on unseen topics."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline

from ragauge.estimate.outcomes import RIGHT


def fitted(estimator: Any, X: pd.DataFrame, y: np.ndarray, weights: np.ndarray | None) -> Any:
    """A fitted copy of an estimator of `fit_predictor`; weights enter its means, scales and likelihood."""
    model = clone(estimator)
    if weights is None or not isinstance(model, Pipeline):
        return model.fit(X, y)
    # The first step takes no weights: its columns follow from the knots, which are given.
    return model.fit(X, y, **{f"{name}__sample_weight": weights for name, _ in model.steps[1:]})


class RightCalibrated(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """`estimator` with P(class 5) mapped by isotonic regression; the other classes share the rest in proportion.

    The map is fitted on out-of-fold probabilities, folds being of whole topics (`groups`), the model on all
    rows.
    """

    def __init__(self, estimator: Any, n_splits: int = 5, seed: int = 0) -> None:
        self.estimator = estimator
        self.n_splits = n_splits
        self.seed = seed

    def fit(self, X: pd.DataFrame, y: np.ndarray, groups: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """The fitted classifier; y holds judge classes, groups the topic of every row."""
        labels = np.asarray(y)
        self.estimator_ = fitted(self.estimator, X, labels, weights)
        self.classes_ = self.estimator_.classes_
        self.isotonic_ = None
        splits = min(self.n_splits, len(np.unique(groups)))
        if RIGHT in self.classes_ and len(self.classes_) > 1 and splits > 1:
            held_out = np.zeros(len(labels))
            folds = GroupKFold(splits, shuffle=True, random_state=self.seed).split(X, labels, groups)
            for train, test in folds:
                seen = np.unique(labels[train])
                if len(seen) == 1:  # a logistic regression needs two
                    held_out[test] = float(seen[0] == RIGHT)
                elif RIGHT in seen:
                    of_train = None if weights is None else weights[train]
                    model = fitted(self.estimator, X.iloc[train], labels[train], of_train)
                    held_out[test] = model.predict_proba(X.iloc[test])[:, list(model.classes_).index(RIGHT)]
            self.isotonic_ = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
            self.isotonic_.fit(held_out, labels == RIGHT, sample_weight=weights)
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """float64 [rows, classes] in the order of `classes_`."""
        probabilities = np.asarray(self.estimator_.predict_proba(X), dtype=float)
        if self.isotonic_ is None:
            return probabilities
        at = int(np.flatnonzero(self.classes_ == RIGHT)[0])
        right = self.isotonic_.predict(probabilities[:, at])
        rest = np.delete(probabilities, at, axis=1)
        total = rest.sum(axis=1, keepdims=True)
        rest = np.divide(rest, total, out=np.full_like(rest, 1 / rest.shape[1]), where=total > 0)
        return np.insert(rest * (1 - right)[:, None], at, right, axis=1)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """The most likely class of every row."""
        return np.asarray(self.classes_)[self.predict_proba(X).argmax(axis=1)]
