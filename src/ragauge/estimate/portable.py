"""A fitted predictor as numbers in JSON, written, read and applied without executing code of a file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.estimate.outcomes import CLASSES, RIGHT

FORMAT = "ragauge.predictor"
VERSION = 2
MAX_BYTES = 1_000_000  # a predictor takes a few thousand
_MAX_FEATURES = 100
_MAX_KNOTS = 1_000
_MAX_DEGREE = 5
_MAX_STEPS = 20_000  # of the isotonic map: a point per distinct probability
_KEYS = (
    "format", "version", "features", "classes", "spline", "mean", "scale", "coefficients", "intercepts",
    "calibration", "settings", "range",
)  # fmt: skip


@dataclass(frozen=True)
class Spline:
    """The B-spline basis of one feature without its last function; `knots` holds all knots."""

    feature: str
    degree: int
    knots: np.ndarray

    @property
    def n_columns(self) -> int:
        """Number of columns of the feature."""
        return len(self.knots) - self.degree - 2

    def columns(self, x: np.ndarray) -> np.ndarray:
        """float64 [rows, n_columns]; constant beyond the first and the last inner knot."""
        from scipy.interpolate import BSpline

        inside = np.clip(x, self.knots[self.degree], self.knots[-self.degree - 1])
        basis = BSpline(self.knots, np.eye(self.n_columns + 1), self.degree)
        return np.asarray(basis(inside), dtype=float)[:, :-1]


@dataclass(frozen=True)
class PortablePredictor:
    """P(class | features) of a fitted predictor, equal to that of the scikit-learn estimator behind it.

    Columns are the spline's, then the other features in their order. Less `mean`, over `scale`, they enter a
    multinomial logistic regression with `intercepts` and `coefficients` [1 or classes, columns]: one row of
    coefficients for two classes, none for one. `calibration` maps P(5): x and y [points] of a piecewise linear
    function. `settings` say what its scores mean. `feature_range_` is {feature: (lowest, highest value)} of the fit;
    None where the estimator does not say.
    """

    features: tuple[str, ...]
    classes: tuple[int, ...]
    spline: Spline | None
    mean: np.ndarray
    scale: np.ndarray
    coefficients: np.ndarray
    intercepts: np.ndarray
    calibration: tuple[np.ndarray, np.ndarray] | None
    settings: Mapping[str, Any]
    feature_range_: Mapping[str, tuple[float, float]] | None = None

    @property
    def classes_(self) -> np.ndarray:
        """The predictor's judge classes, as in scikit-learn."""
        return np.asarray(self.classes)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The columns that `predict_proba` needs, as in scikit-learn."""
        return np.asarray(self.features, dtype=object)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Class probabilities, float64 [rows, classes] in the order of `classes_`, rows summing to 1."""
        return self._calibrated(self.probabilities(self.columns(frame)))

    def columns(self, frame: pd.DataFrame) -> np.ndarray:
        """Standardised inputs of the logistic regression, float64 [rows, columns]."""
        if len(self.classes) == 1:
            return np.empty((len(frame), 0))
        plain = [f for f in self.features if self.spline is None or f != self.spline.feature]
        columns = frame[plain].to_numpy(dtype=float)
        if self.spline is not None:
            bent = self.spline.columns(frame[self.spline.feature].to_numpy(dtype=float))
            columns = np.hstack([bent, columns])
        return np.asarray((columns - self.mean) / self.scale)

    def probabilities(self, columns: np.ndarray) -> np.ndarray:
        """Class probabilities of `columns` before P(5) is calibrated, float64 [rows, classes]."""
        if len(self.classes) == 1:
            return np.ones((len(columns), 1))
        return _probabilities(columns @ self.coefficients.T + self.intercepts)

    def _calibrated(self, probabilities: np.ndarray) -> np.ndarray:
        if self.calibration is None:
            return probabilities
        at = self.classes.index(RIGHT)
        right = np.interp(probabilities[:, at], *self.calibration)
        rest = np.delete(probabilities, at, axis=1)
        total = rest.sum(axis=1, keepdims=True)
        rest = np.divide(rest, total, out=np.full_like(rest, 1 / rest.shape[1]), where=total > 0)
        return np.insert(rest * (1 - right)[:, None], at, right, axis=1)

    def to_json(self) -> str:
        """The predictor as JSON; numbers keep every bit."""
        spline = self.spline and {
            "feature": self.spline.feature,
            "degree": self.spline.degree,
            "knots": self.spline.knots.tolist(),
        }
        calibration = self.calibration and {
            "x": self.calibration[0].tolist(),
            "y": self.calibration[1].tolist(),
        }
        content = {
            "format": FORMAT,
            "version": VERSION,
            "features": list(self.features),
            "classes": list(self.classes),
            "spline": spline,
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "coefficients": self.coefficients.tolist(),
            "intercepts": self.intercepts.tolist(),
            "calibration": calibration,
            "settings": dict(self.settings),
            "range": self.feature_range_ and dict(self.feature_range_),
        }
        return json.dumps(content, indent=1, sort_keys=True, allow_nan=False)


def _probabilities(logits: np.ndarray) -> np.ndarray:
    """Class probabilities of logits [rows, classes]; a single column is for the second of two classes."""
    from scipy.special import expit

    if logits.shape[1] == 1:
        second = expit(logits[:, 0])
        return np.column_stack([1 - second, second])
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def portable(model: Any, settings: Mapping[str, Any]) -> PortablePredictor:
    """The numbers of a fitted estimator of `fit_predictor`, or of a logistic regression over a DataFrame.

    Raises TypeError for any other estimator.
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline

    from ragauge.estimate._calibration import RightCalibrated

    if isinstance(model, PortablePredictor):
        return model
    calibration, ranges = None, getattr(model, "feature_range_", None)
    if isinstance(model, RightCalibrated):
        if model.isotonic_ is not None:
            points = model.isotonic_.X_thresholds_, model.isotonic_.y_thresholds_
            calibration = (np.asarray(points[0], dtype=float), np.asarray(points[1], dtype=float))
        model = model.estimator_
    features = tuple(map(str, model.feature_names_in_))
    classes = tuple(int(c) for c in model.classes_)
    nothing = np.empty(0)
    if isinstance(model, DummyClassifier) and len(classes) == 1:
        return PortablePredictor(
            features, classes, None, nothing, nothing, np.empty((0, 0)), nothing, None, settings, ranges
        )
    spline, mean, scale = None, np.zeros(len(features)), np.ones(len(features))
    if isinstance(model, Pipeline):
        columns, scaler, model = (step for _, step in model.steps)
        bent = columns.transformers[0][2]
        if bent:
            basis = columns.named_transformers_["spline"].bsplines_[0]
            spline = Spline(bent[0], int(basis.k), np.asarray(basis.t, dtype=float))
            plain = [f for f in features if f != bent[0]]
            features = (*bent, *plain)
        mean, scale = np.asarray(scaler.mean_), np.asarray(scaler.scale_)
    if not isinstance(model, LogisticRegression):
        raise TypeError(f"{type(model).__name__} is no estimator of a predictor")
    return PortablePredictor(
        features, classes, spline, mean, scale, model.coef_, model.intercept_, calibration, settings, ranges
    )


def read_portable(text: str) -> PortablePredictor:
    """The predictor that `to_json` wrote; DataError in one line for anything else.

    Every number is finite, every shape follows from features, spline and classes, and sizes are bounded.
    """
    if len(text) > MAX_BYTES:
        raise DataError(f"{len(text):,} characters, allowed are {MAX_BYTES:,}")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"is no JSON ({type(error).__name__})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(f"is not of the format {FORMAT}")
    if content.get("version") != VERSION or type(content["version"]) is not int:
        raise DataError(f"has the format's version {_short(content.get('version'))}, this ragauge reads {VERSION}")
    odd = [k for k in _KEYS if k not in content] + [str(k) for k in content if k not in _KEYS]
    if odd:
        missing = odd[0] not in content
        raise DataError(f"{'lacks the key' if missing else 'has an unknown key'} {_short(odd[0])}")
    features = _names(content["features"])
    classes = content["classes"]
    known = isinstance(classes, list) and all(type(c) is int and c in CLASSES for c in classes)
    if not known or not classes or classes != sorted(set(classes)):
        raise DataError(f"classes: expected a sorted list of some of {', '.join(map(str, CLASSES))}")
    if not isinstance(content["settings"], dict):
        raise DataError("settings: expected a mapping")
    spline = _read_spline(content["spline"], features)
    n_columns = 0 if len(classes) == 1 else len(features) + (spline.n_columns - 1 if spline else 0)
    n_rows = {1: 0, 2: 1}.get(len(classes), len(classes))
    scale = _numbers(content["scale"], "scale", n_columns)
    if (scale <= 0).any():
        raise DataError("scale: every number must be above 0")
    rows = content["coefficients"]
    if not isinstance(rows, list) or len(rows) != n_rows:
        raise DataError(f"coefficients: expected {n_rows} row(s) of {n_columns} number(s)")
    return PortablePredictor(
        features=features,
        classes=tuple(classes),
        spline=spline,
        mean=_numbers(content["mean"], "mean", n_columns),
        scale=scale,
        coefficients=np.array([_numbers(r, "coefficients", n_columns) for r in rows]).reshape(n_rows, n_columns),
        intercepts=_numbers(content["intercepts"], "intercepts", n_rows),
        calibration=_read_calibration(content["calibration"], classes),
        settings=content["settings"],
        feature_range_=_read_range(content["range"], features),
    )


def _read_range(value: Any, features: tuple[str, ...]) -> dict[str, tuple[float, float]] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != set(features):
        raise DataError(f"range: expected null, or a mapping of {', '.join(features)}")
    ranges = {}
    for feature in features:
        low, high = map(float, _numbers(value[feature], f"range.{feature}", 2))
        if low > high:
            raise DataError(f"range.{feature}: the first number must not be above the second")
        ranges[feature] = (low, high)
    return ranges


def _read_spline(value: Any, features: tuple[str, ...]) -> Spline | None:
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"feature", "degree", "knots"}:
        raise DataError("spline: expected null, or a mapping of feature, degree and knots")
    if value["feature"] != features[0]:
        raise DataError(f"spline.feature: expected the first feature, {features[0]}")
    degree, knots = value["degree"], value["knots"]
    if type(degree) is not int or not 0 <= degree <= _MAX_DEGREE:
        raise DataError(f"spline.degree: allowed are 0 to {_MAX_DEGREE}")
    least = 2 * (degree + 1)
    if not isinstance(knots, list) or not least <= len(knots) <= _MAX_KNOTS:
        raise DataError(f"spline.knots: allowed are {least} to {_MAX_KNOTS:,} numbers")
    vector = _numbers(knots, "spline.knots", len(knots))
    if (np.diff(vector) <= 0).any():
        raise DataError("spline.knots: every number must be above the one before")
    return Spline(value["feature"], degree, vector)


def _read_calibration(value: Any, classes: list[int]) -> tuple[np.ndarray, np.ndarray] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"x", "y"}:
        raise DataError("calibration: expected null, or a mapping of x and y")
    if RIGHT not in classes or len(classes) == 1:
        raise DataError(f"calibration: needs class {RIGHT} beside another")
    size = len(value["x"]) if isinstance(value["x"], list) else 0
    if not 1 <= size <= _MAX_STEPS:
        raise DataError(f"calibration.x: allowed are 1 to {_MAX_STEPS:,} numbers")
    x, y = (_numbers(value[name], f"calibration.{name}", size) for name in ("x", "y"))
    if (np.diff(x) <= 0).any():
        raise DataError("calibration.x: every number must be above the one before")
    if (y < 0).any() or (y > 1).any():
        raise DataError("calibration.y: allowed are 0 to 1")
    return x, y


def _names(value: Any) -> tuple[str, ...]:
    good = isinstance(value, list) and all(isinstance(name, str) and 0 < len(name) <= 100 for name in value)
    if not good or not 1 <= len(value) <= _MAX_FEATURES or len(set(value)) < len(value):
        raise DataError(f"features: expected 1 to {_MAX_FEATURES} different names")
    return tuple(value)


def _numbers(value: Any, where: str, size: int) -> np.ndarray:
    """A list of finite numbers as float64 [size]."""
    if not isinstance(value, list) or len(value) != size:
        raise DataError(f"{where}: expected {size} number(s)")
    try:
        finite = all(type(v) in (int, float) and math.isfinite(v) for v in value)
    except OverflowError:
        finite = False
    if not finite:
        raise DataError(f"{where}: holds what is no finite number")
    return np.array(value, dtype=float)


def _short(value: object) -> str:
    return repr(value)[:40]
