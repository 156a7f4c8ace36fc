"""Class shares among unjudged answers, corrected by the labels of the predictor's training.

The mean of P(class) over the window says what the predictor expects. Its errors are known on the training topics, from
models that did not see them. Density-ratio weights make the training look like the window. The weighted mean error
corrects the expectation, and its variance widens the interval. This is prediction-powered inference (Angelopoulos et
al., Science 382, 2023) for another population; the estimate is doubly robust (Bang & Robins, Biometrics 61(4), 2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import beta, t

from ragauge.contract.frames import HALLUCINATIONS
from ragauge.estimate.intervals import LEVEL, Estimate, bounded_mean, cluster_variance
from ragauge.estimate.outcomes import (
    CLASSES,
    RIGHT,
    class_indicators,
    clusters_by_topic,
    clusters_of,
    labels_of,
    topic_codes,
    topic_folds,
    weights_of,
)
from ragauge.estimate.predictor import fit_predictor
from ragauge.plugins.foresee.reference import Reference

_FOLDS = 10
_HEAVIEST = 20.0  # weight of a training row, in means; heavier ones are cut to it
SHARES = (*(f"share_{c}" for c in CLASSES), "correct_share", "hallucination_share")


@dataclass(frozen=True)
class Shares:
    """Estimates by name (SHARES), and their basis.

    effective_topics: how many training topics, equally weighted, have the weight of those that look like the window;
    NaN without training rows, where the intervals are of the window's topics alone.
    """

    estimates: dict[str, Estimate]
    effective_topics: float


def foreseen_shares(
    probabilities: np.ndarray,
    window: pd.DataFrame,
    reference: Reference | None,
    features: Sequence[str],
    of_topics: bool = False,
    seed: int = 0,
) -> Shares:
    """Shares of the classes in a window of answers, each with a 95 % interval.

    probabilities: float64 [rows, 5] of the window's rows [qid, features], one a topic. of_topics: the shares are those
    of these very answers, and not of the population that their questions come from. Limits are symmetric on the logit
    scale, by Student's t.
    """
    if reference is None:
        columns = dict(zip(SHARES, _columns(probabilities).T, strict=True))
        found = {n: bounded_mean(v, window["qid"], clusters=clusters_of(window)) for n, v in columns.items()}
        return Shares(found, float("nan"))
    errors, weights = _errors_and_weights(window, reference, features, seed)
    n, foreseen, off = len(window), _columns(probabilities), _columns(errors)
    total = weights.sum()
    means, correction = foreseen.mean(axis=0), (weights[:, None] * off).sum(axis=0) / total
    added = weights[:, None] * (off - correction) / total
    of_training = cluster_variance(added, None) * min(len(added) / reference.n_topics, 1)
    if of_topics:
        of_window = (foreseen * (1 - foreseen)).sum(axis=0) / n**2
    else:
        of_window = cluster_variance((foreseen - means) / n, clusters_by_topic(window, window["qid"].to_numpy()))
    effective = float(total**2 / (weights**2).sum())
    values = np.clip(means + correction, 0, 1)
    limits = _limits(values, np.sqrt(of_training + of_window), effective)
    return Shares({name: Estimate(*of, n, LEVEL) for name, of in zip(SHARES, limits, strict=True)}, effective)


def _columns(of_classes: np.ndarray) -> np.ndarray:
    """float64 [rows, 7]: the columns of SHARES from those of the five classes."""
    hallucination = of_classes[:, [c - 1 for c in HALLUCINATIONS]].sum(axis=1)
    return np.column_stack([of_classes, of_classes[:, RIGHT - 1], hallucination])


def _limits(values: np.ndarray, errors: np.ndarray, effective: float) -> list[tuple[float, float, float]]:
    """(value, lo, hi) of each share; near 0 or 1 the limits reach as far as for none, or all, of so many topics."""
    reach = t.isf((1 - LEVEL) / 2, max(effective - 1, 1.0))
    none = float(beta.ppf(LEVEL / 2 + 0.5, 1, max(effective, 1.0)))  # the upper limit where none was seen
    found = []
    for value, error in zip(values, errors, strict=True):
        inside = min(max(value, 1 / (2 * effective + 2)), 1 - 1 / (2 * effective + 2))
        apart = reach * error / (inside * (1 - inside))
        lo = min(float(expit(logit(inside) - apart)), 1 - none)
        hi = max(float(expit(logit(inside) + apart)), none)
        found.append((float(value), min(lo, float(value)), max(hi, float(value))))
    return found


def _errors_and_weights(
    window: pd.DataFrame, reference: Reference, features: Sequence[str], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Errors float64 [topics, 5], class less P(class), and weights float64 [topics] of the training topics."""
    rows = reference.rows
    codes, n_topics = topic_codes(rows["qid"])
    folds = topic_folds(codes, n_topics, _FOLDS, seed)
    apart = np.zeros((len(rows), len(CLASSES)))
    for fold in np.unique(folds):
        held_out = folds == fold
        model = fit_predictor(rows[~held_out], features, **reference.how, seed=seed)
        apart[held_out] = model.predict_proba(rows[held_out])
    stand_for = weights_of(rows)
    ratio = stand_for * density_ratio(rows[[*features]], window[[*features]], codes)
    error = class_indicators(labels_of(rows)) - apart
    weights = np.bincount(codes, ratio)
    sums = np.column_stack([np.bincount(codes, ratio * column) for column in error.T])
    return sums / np.maximum(weights, 1e-12)[:, None], weights


def density_ratio(training: pd.DataFrame, window: pd.DataFrame, topics: np.ndarray) -> np.ndarray:
    """float64 [training rows]: the relative frequency of such a row in the window, up to a factor; at most 20 means.

    A logistic regression tells window from training (Bickel et al., JMLR 10, 2009). `topics` numbers the topics of the
    training rows; each topic counts once.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x = np.vstack([training.to_numpy(dtype=float), window.to_numpy(dtype=float)])
    y = np.repeat([0, 1], [len(training), len(window)])
    once = 1 / np.bincount(topics)[topics]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    model.fit(x, y, logisticregression__sample_weight=np.concatenate([once, np.ones(len(window))]))
    ratio = np.exp(model.decision_function(x[: len(training)]))
    return np.asarray(np.minimum(ratio / ratio.mean(), _HEAVIEST))
