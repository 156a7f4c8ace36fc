"""A network that reads the question, stacked on the predictor of judge classes: one layer over a frozen encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.option import CONF, option
from ragauge.estimate import cross_validate
from ragauge.estimate.outcomes import RIGHT, labels_of, topic_codes, topic_folds, weights_of
from ragauge.plugins.training.contract import Fitted
from ragauge.plugins.training.trainers.predictor import PredictorTrainer

FEATURE = "network"  # the network's logit of a right answer, a feature of the predictor and a column of outcomes
PROBE = "What is measured?"  # a text whose vector says whether an embedder is that of the training
PENALTIES = (30.0, 100.0, 300.0, 1000.0)
_FOLDS = 5

Embed = Callable[[Sequence[str]], np.ndarray]  # questions to float [questions, dimensions]


@dataclass(frozen=True)
class Head:
    """One layer: the logit of a right answer is `vector @ weights + intercept`. penalty: inf for no layer."""

    weights: np.ndarray
    intercept: float
    penalty: float


@option("trainer/foresight")
class ForesightTrainer(PredictorTrainer):
    """A logistic layer over the encoder's vector of the question, stacked on the predictor of `features`.

    The features bring what is known of the context, such as its cosines with the question. The layer's logit, from a
    fit on other topics, is one more feature of the predictor. Its L2 penalty is chosen by cross-validation. Where no
    penalty makes the log loss on unseen topics better by a standard error, the layer is left out: its logit is 0.
    Source: stacking (Wolpert, Neural Networks 5(2), 1992).
    """

    component = "foresight"
    version = 1
    uses = frozenset({"embedder"})

    features: Sequence[str] = CONF

    def fit(self, outcomes: pd.DataFrame, n_boot: int, seed: int, embed: Embed | None = None) -> Fitted:
        """Like `PredictorTrainer.fit`, for outcomes with `query`; the layer goes into the settings.

        Values: network_penalty (missing where the layer was left out), and the AUC for right answers without it.
        """
        assert embed is not None
        rows = self._learnable(outcomes)
        queries = list(dict.fromkeys(rows["query"]))
        known = dict(zip(queries, np.asarray(embed(queries), dtype=float), strict=True))
        vectors = np.stack([known[query] for query in rows["query"]])
        head, logits = stacked(rows, self.features, vectors, seed)
        rows = rows.assign(**{FEATURE: logits})
        of_predictor: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(PredictorTrainer)}
        of_predictor["features"] = (*self.features, FEATURE)
        found = PredictorTrainer(**of_predictor).fit(rows, n_boot, seed)
        without = cross_validate(rows, self.features, self.spline, self.calibrate, self.penalty, seed=seed, n_boot=0)
        values = {**found.trained.values, "rows_left_out": float(len(outcomes) - len(rows))}
        values["predictor_auc_correct_without_network"] = float(without.metrics()["predictor_auc_correct"])
        used = np.isfinite(head.penalty)
        values |= {"network_penalty": head.penalty} if used else {}
        told = f"one layer over {vectors.shape[1]} numbers of the question, penalty {head.penalty:g}"
        facts = {**found.trained.facts, "Network": told if used else "left out, as it made the log loss no better"}
        kept = {
            "weights": head.weights.tolist(),
            "intercept": head.intercept,
            "probe": np.asarray(embed([PROBE]), dtype=float)[0].round(4).tolist(),
        }
        trained = replace(found.trained, values=values, facts=facts)
        return replace(found, trained=trained, settings={**found.settings, FEATURE: kept})


def stacked(rows: pd.DataFrame, features: Sequence[str], vectors: np.ndarray, seed: int) -> tuple[Head, np.ndarray]:
    """The layer of all rows, and float64 [rows]: each row's logit by a layer fitted on other topics.

    rows: [qid, label, features], all known; vectors: float64 [rows, dimensions].
    """
    right = (labels_of(rows) == RIGHT).astype(int)
    topics, n_topics = topic_codes(rows["qid"])
    none = Head(np.zeros(vectors.shape[1]), 0.0, float("inf")), np.zeros(len(rows))
    folds = topic_folds(topics, n_topics, _FOLDS, seed)
    if any(len(np.unique(right[folds != fold])) < 2 for fold in np.unique(folds)):
        return none
    weight = weights_of(rows)
    x = rows[[*features]].to_numpy(dtype=float)
    plain = _losses(_out_of_fold(x, right, folds, 1.0, weight), right, topics, weight)
    best, gain = none, 0.0
    for penalty in PENALTIES:
        logits = _out_of_fold(vectors, right, folds, penalty, weight)
        both = _out_of_fold(np.column_stack([x, logits]), right, folds, 1.0, weight)
        better = plain - _losses(both, right, topics, weight)
        if better.mean() > max(gain, better.std(ddof=1) / np.sqrt(n_topics)):
            best, gain = (_head(vectors, right, penalty, weight), logits), float(better.mean())
    return best


def _model(penalty: float) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(C=1 / penalty, max_iter=300))


def _out_of_fold(x: np.ndarray, right: np.ndarray, folds: np.ndarray, penalty: float, weight: np.ndarray) -> np.ndarray:
    """float64 [rows]: each row's logit by a logistic regression on the other folds."""
    found = np.zeros(len(x))
    for fold in np.unique(folds):
        out = folds == fold
        model = _model(penalty).fit(x[~out], right[~out], logisticregression__sample_weight=weight[~out])
        found[out] = model.decision_function(x[out])
    return found


def _losses(logits: np.ndarray, right: np.ndarray, topics: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """float64 [topics]: the mean log loss of the rows of each topic."""
    losses = np.logaddexp(0, np.where(right == 1, -logits, logits))
    return np.asarray(np.bincount(topics, weight * losses) / np.bincount(topics, weight))


def _head(vectors: np.ndarray, right: np.ndarray, penalty: float, weight: np.ndarray) -> Head:
    """The layer fitted on all rows, for unscaled vectors."""
    scaler, layer = (step for _, step in _model(penalty).fit(
        vectors, right, logisticregression__sample_weight=weight).steps)  # fmt: skip
    weights = layer.coef_[0] / scaler.scale_
    return Head(weights, float(layer.intercept_[0] - scaler.mean_ @ weights), penalty)


def read_head(settings: Any, model: str) -> tuple[Head, np.ndarray]:
    """The layer in a predictor's settings, and the vector of PROBE; DataError without a layer."""
    kept = settings.get(FEATURE)
    try:
        weights, probe = (np.array(kept[name], dtype=float) for name in ("weights", "probe"))
        whole = weights.ndim == 1 and weights.shape == probe.shape and bool(np.isfinite(weights).all())
        if whole:
            return Head(weights, float(kept["intercept"]), float("nan")), probe
    except (KeyError, TypeError, ValueError):
        pass
    raise DataError(f"{model} holds no network; ragauge train trainer=foresight makes a predictor that has one")
