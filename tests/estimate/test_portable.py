"""A predictor in numbers: equal to scikit-learn's, and a file that is no predictor is refused in a line."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.estimate import fit_predictor
from ragauge.estimate.portable import PortablePredictor, portable, read_portable
from ragauge.estimate.predictor import Predictor

GRID = pd.DataFrame(
    {
        "qid": [f"g{i}" for i in range(203)],
        "ir_score": [-0.5, 1.5, *np.linspace(0, 1, 201)],
        "n_used": np.linspace(0, 900, 203),
    }
)


def outcomes(classes: tuple[int, ...], n: int = 240, seed: int = 0) -> pd.DataFrame:
    """Rows whose class rises with the score, with noise; every class occurs."""
    rng = np.random.default_rng(seed)
    scores = np.where(rng.random(n) < 0.2, 0.0, rng.random(n))
    at = np.clip((scores + rng.normal(0, 0.3, n)) * len(classes), 0, len(classes) - 1).astype(int)
    at[: len(classes)] = range(len(classes))
    labels = pd.array(np.asarray(classes)[at], dtype="Int8")
    qids = [f"q{i % 80}" for i in range(n)]
    return pd.DataFrame({"qid": qids, "ir_score": scores, "n_used": rng.integers(0, 900, n), "label": labels})


@pytest.mark.parametrize("classes", [(1, 2, 3, 4, 5), (1, 4, 5), (2, 3, 4), (1, 5), (3, 4), (5,), (2,)])
@pytest.mark.parametrize("spline", [False, True])
@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize("features", [("ir_score",), ("n_used", "ir_score")])
def test_read_back_it_gives_scikit_learn_s_probabilities(classes, spline, calibrate, features) -> None:
    fitted = fit_predictor(outcomes(classes), features, spline=spline, calibrate=calibrate)
    again = read_portable(portable(fitted.model, {"n_tokens": [100]}).to_json())
    assert again.settings == {"n_tokens": [100]}
    columns = GRID[list(features)].astype(float)
    expected = fitted.model.predict_proba(columns)
    np.testing.assert_allclose(again.predict_proba(columns), expected, rtol=0, atol=1e-12)
    assert again.classes_.tolist() == list(fitted.classes)
    assert again.feature_range_ == fitted.model.feature_range_
    assert set(again.feature_range_) == set(features)
    five = Predictor(again, tuple(again.feature_names_in_), 0, 0, 0).predict_proba(GRID[2:])
    np.testing.assert_allclose(five, fitted.predict_proba(GRID[2:]), rtol=0, atol=1e-12)
    assert read_portable(again.to_json()).to_json() == again.to_json()


def test_by_hand_two_classes_are_a_logistic_curve() -> None:
    content = {
        "format": "ragauge.predictor", "version": 2, "features": ["ir_score"], "classes": [1, 5],
        "spline": None, "mean": [0.5], "scale": [0.25], "coefficients": [[2.0]], "intercepts": [1.0],
        "calibration": None, "settings": {}, "range": None,
    }  # fmt: skip
    found = read_portable(json.dumps(content)).predict_proba(pd.DataFrame({"ir_score": [0.5, 1.0]}))
    right = [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(-5))]
    np.testing.assert_allclose(found, [[1 - p, p] for p in right], rtol=1e-15)


def test_an_estimator_of_another_kind_is_not_written() -> None:
    from sklearn.tree import DecisionTreeClassifier

    frame = GRID[["ir_score"]]
    model = DecisionTreeClassifier().fit(frame, [1] * 100 + [5] * 103)
    with pytest.raises(TypeError, match="DecisionTreeClassifier is no estimator of a predictor"):
        portable(model, {})


def _content() -> dict[str, Any]:
    model = fit_predictor(outcomes((1, 4, 5)), spline=True, calibrate=True).model
    found: dict[str, Any] = json.loads(portable(model, {}).to_json())
    return found


def _bent(**changes: Any) -> dict[str, Any]:
    content = _content()
    for path, value in changes.items():
        *parents, name = path.split("__")
        node = content
        for parent in parents:
            node = node[parent]
        node[name] = value
    return content


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"mean": [float("nan")] * 6}, "mean: holds what is no finite number"),
        ({"intercepts": [1, 2, float("inf")]}, "intercepts: holds what is no finite number"),
        ({"intercepts": [1, 2, 10**400]}, "intercepts: holds what is no finite number"),
        ({"intercepts": [1, 2, "3"]}, "intercepts: holds what is no finite number"),
        ({"intercepts": [1, 2, True]}, "intercepts: holds what is no finite number"),
        ({"scale": [1.0]}, "scale: expected 6"),
        ({"scale": [0.0] * 6}, "scale: every number must be above 0"),
        ({"coefficients": [[1.0] * 6] * 2}, "coefficients: expected 3"),
        ({"coefficients": [[1.0] * 5] * 3}, "coefficients: expected 6"),
        ({"coefficients": 7}, "coefficients: expected 3"),
        ({"classes": [1, 4, 6]}, "classes: expected"),
        ({"classes": [5, 4, 1]}, "classes: expected"),
        ({"classes": []}, "classes: expected"),
        ({"features": "ir_score"}, "features: expected"),
        ({"features": []}, "features: expected"),
        ({"version": 3}, "has the format's version 3, this ragauge reads 2"),
        ({"range": {}}, "range: expected null, or a mapping of ir_score"),
        ({"range": {"ir_score": [0.2]}}, "range.ir_score: expected 2 number(s)"),
        ({"range": {"ir_score": [0.2, float("nan")]}}, "range.ir_score: holds what is no finite number"),
        ({"range": {"ir_score": [0.7, 0.2]}}, "range.ir_score: the first number must not be above"),
        ({"version": None}, "has the format's version None"),
        ({"format": "other"}, "is not of the format ragauge.predictor"),
        ({"more": 1}, "has an unknown key 'more'"),
        ({"settings": []}, "settings: expected a mapping"),
        ({"spline__degree": 10**9}, "spline.degree: allowed are 0 to 5"),
        ({"spline__knots": list(range(1001))}, "spline.knots: allowed are 8 to 1,000 numbers"),
        ({"spline__knots": [0.0] * 11}, "spline.knots: every number must be above the one before"),
        ({"spline__feature": "n_used"}, "spline.feature: expected the first feature"),
        ({"calibration__y": [0.5]}, "calibration.y: expected"),
        ({"calibration__x": []}, "calibration.x: allowed are 1"),
        ({"calibration": {"x": [0.5], "y": [2.0]}}, "calibration.y: allowed are 0 to 1"),
    ],
)
def test_a_file_that_is_no_predictor_is_refused_in_a_line(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError) as caught:
        read_portable(json.dumps(_bent(**changes)))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", sorted(_content()))
def test_a_missing_key_is_named(key: str) -> None:
    content = _content()
    del content[key]
    with pytest.raises(DataError, match="format" if key in ("format", "version") else f"lacks the key '{key}'"):
        read_portable(json.dumps(content))


@pytest.mark.parametrize("text", ["", "[" * 100_000, "nothing", "[]", "1" * 5000, '{"format": "' + "x" * 2_000_000])
def test_what_is_no_json_or_too_long_is_refused_in_a_line(text: str) -> None:
    with pytest.raises(DataError) as caught:
        read_portable(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_it_is_frozen_in_numbers_alone() -> None:
    again = read_portable(json.dumps(_content()))
    assert isinstance(again, PortablePredictor)
    assert {type(v).__name__ for v in vars(again).values()} <= {"tuple", "Spline", "ndarray", "dict"}
