"""Predicts class shares of jobs and systems without a judge."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import HALLUCINATIONS, JUDGE_CLASSES
from ragauge.contract.redact import redact_tree
from ragauge.estimate import Predictor, bounded_mean, fit_predictor
from ragauge.estimate.outcomes import LACK, RIGHT, check_outcomes, clusters_of, labels_of

SHARES = ("right", "between", "lack")  # class 5, classes 2 to 4, class 1
METHODS = ("predictor", "thresholds", "unchanged")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prediction:
    """Predicted class shares as metrics, and every topic's probabilities, the riskiest first."""

    metrics: dict[str, float]
    topics: pd.DataFrame


def settings_of(measure: Mapping[str, Any], tokenizer: Mapping[str, Any], n_tokens: list[int]) -> dict[str, Any]:
    """The settings that determine the meaning of a predictor's scores.

    They are stored with a model, hence without secrets, and compared before use."""
    return {
        "measure": redact_tree(dict(measure)),
        "tokenizer": redact_tree(dict(tokenizer)),
        "n_tokens": sorted(set(n_tokens)),
    }


def check_settings(trained: Mapping[str, Any], wanted: Mapping[str, Any], allow: bool) -> list[str]:
    """Differences of a job from the settings of the predictor's fit; ConfigError unless allowed.

    A budget between the smallest and the largest of the fit is no difference.
    """
    if not trained:
        differences = ["the model does not say which measure, tokenizer and budgets it was fitted on"]
    else:
        differences = [
            f"{name}: fitted on {trained.get(name)}, this job has {wanted[name]}"
            for name in ("measure", "tokenizer")
            if trained.get(name) != wanted[name]
        ]
        budgets = trained.get("n_tokens") or [0]
        outside = [n for n in wanted["n_tokens"] if not min(budgets) <= n <= max(budgets)]
        if outside:
            differences.append(f"n_tokens: fitted on {min(budgets)} to {max(budgets)}, this job has {outside[0]}")
    if differences and not allow:
        raise ConfigError(f"predictor: {'; '.join(differences)}. To use it nevertheless: predictor_mismatch=allow")
    return differences


def predict(model: Any, outcomes: pd.DataFrame) -> Prediction:
    """Predicted shares of the five classes with 95 % intervals over topics, from each topic's IR score.

    `model` is a scikit-learn classifier of judge classes; `outcomes` has qid, query and the model's features.
    The intervals say how far other topics would move the shares; the model itself is taken as it is. Where the model
    has the range of its features in the fit, `predicted_outside_share` is the share of topics with a feature outside of
    it, and a warning reports it. Topics that lack a feature are left out; DataError where all do.
    """
    outcomes = outcomes.dropna(subset=[f for f in _features(model) if f in outcomes])
    if outcomes.empty:
        raise DataError(f"no topic has {', '.join(_features(model))}: there is nothing to predict from")
    probabilities = _probabilities(model, outcomes)
    of_class = {c: probabilities[:, c - 1] for c in JUDGE_CLASSES}
    shares = {f"share_{c}": values for c, values in of_class.items()}
    shares["correct_share"] = of_class[5]
    shares["hallucination_share"] = np.sum([of_class[c] for c in HALLUCINATIONS], axis=0)
    metrics: dict[str, float] = {}
    for name, values in shares.items():
        estimate = bounded_mean(values, outcomes["qid"], clusters=clusters_of(outcomes))
        metrics |= {
            f"predicted_{name}": estimate.value,
            f"predicted_{name}_lo": estimate.lo,
            f"predicted_{name}_hi": estimate.hi,
        }
    metrics |= _outside_share(model, outcomes)
    topics = outcomes[["qid", "query", "ir_score"]].assign(
        risk=shares["hallucination_share"], **{f"p{c}": values for c, values in of_class.items()}
    )
    return Prediction(metrics, topics.sort_values(["risk", "qid"], ascending=[False, True], ignore_index=True))


def _outside_share(model: Any, outcomes: pd.DataFrame) -> dict[str, float]:
    """The metric predicted_outside_share; {} if the model does not record the ranges of its fit."""
    ranges: Mapping[str, tuple[float, float]] | None = getattr(model, "feature_range_", None)
    if not ranges or outcomes.empty:
        return {}
    outside = {f: ~outcomes[f].astype(float).between(low, high) for f, (low, high) in ranges.items()}
    n_topics = outcomes["qid"].nunique()
    share = outcomes.loc[np.any(list(outside.values()), axis=0), "qid"].nunique() / n_topics
    for feature, rows in outside.items():
        if rows.any():
            low, high = ranges[feature]
            log.warning(
                "predictor used outside of what it was fitted on: %s was %.3g to %.3g there, %d of %d topics "
                "lie outside",
                *(feature, low, high, outcomes.loc[rows, "qid"].nunique(), n_topics),
            )
    return {"predicted_outside_share": share}


def predict_right(model: Any, outcomes: pd.DataFrame) -> pd.Series:
    """P(5) of every row by qid, float64; `model` and `outcomes` as in `predict`.

    It is 0.5 for a row that lacks a feature.
    """
    known = outcomes.dropna(subset=[f for f in _features(model) if f in outcomes])
    p5 = pd.Series(0.5, index=outcomes.index)
    if len(known):
        p5[known.index] = _probabilities(model, known)[:, 4]
    return pd.Series(p5.to_numpy(), index=outcomes["qid"])


def _features(model: Any) -> tuple[str, ...]:
    return tuple(str(name) for name in getattr(model, "feature_names_in_", ["ir_score"]))


def _probabilities(model: Any, outcomes: pd.DataFrame) -> np.ndarray:
    """Class probabilities, float64 [rows, 5]."""
    return Predictor(model, _features(model), 0, 0, 0).predict_proba(outcomes)


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
    """The class shares of every system of `others`, predicted from the rows of `judged`.

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


def _three(shares: Sequence[float] | np.ndarray) -> list[float]:
    """Right, between and lack from the shares of classes 1 to 5."""
    right, lack = float(shares[RIGHT - 1]), float(shares[LACK - 1])
    return [right, float(sum(shares)) - right - lack, lack]
