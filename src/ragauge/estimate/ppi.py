"""Class shares of all topics from a judged sample: prediction-powered inference (PPI++).

The share of a class is the mean prediction over the topics that were not judged plus the mean error of the prediction
over those that were. lambda weighs the two (see `ragauge.estimate.powered`). All classes have one lambda, so that
their shares add up to 1. Intervals are on the logit scale, since a plain interval of a share near 0 or 1 covers too
little (docs/method.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.frames import HALLUCINATIONS
from ragauge.contract.outcomes import CLUSTER, PROBABILITY_COLUMNS
from ragauge.estimate.intervals import LEVEL
from ragauge.estimate.outcomes import (
    CLASSES,
    check_outcomes,
    class_indicators,
    labels_of,
    of_these_topics,
    topic_codes,
    units_of,
)
from ragauge.estimate.powered import Powered, inside, powered_means, weighted_means
from ragauge.estimate.predictor import fit_predictor
from ragauge.estimate.prompts import drawn, limits, over_prompts

SHARES = (
    *(f"judge_share_{c}" for c in CLASSES),
    "judge_share_missing",
    "hallucination_share",
    "correct_share",
)
_APART = len(CLASSES) + 1  # the first shares, which add up to 1


def cross_fit(
    frame: pd.DataFrame,
    features: Sequence[str] = ("ir_score",),
    spline: bool = False,
    calibrate: bool = False,
    penalty: float = 1.0,
    n_splits: int = 5,
    seed: int = 0,
) -> pd.DataFrame:
    """The frame with out-of-fold p1..p5: no predictor saw the topic that it predicts.

    `frame` has `qid`, `label`, `judged` (bool) and the features. Judged topics are predicted by a model of
    the other folds, the rest by the mean of all folds' models (cross-prediction, Zrnic & Candes 2024). A row
    that lacks a feature, of a topic without evidence say, is predicted by the class shares in place of a
    model. A column `earlier_label` is the class that another run's answer to the topic got (1..5, or missing). Its
    classes are further features, and the only ones of a row that lacks the others. Whether it is missing must not hang
    on which topics are judged. Where the frame has clusters, folds are of whole clusters. Raises DataError for fewer
    than two judged topics, or clusters of them, with a label.
    """
    check_outcomes(frame, ("judged", *features), may_lack=features)
    models: list[tuple[list[str], bool, np.ndarray]] = [
        (list(features), spline, frame[list(features)].notna().all(axis=1).to_numpy())
    ]
    x = frame
    if "earlier_label" in frame:
        earlier = class_indicators(labels_of(frame[["earlier_label"]].set_axis(["label"], axis=1)))
        names = [f"earlier_{c}" for c in CLASSES]
        x = frame.assign(**dict(zip(names, earlier.T, strict=True)))
        everywhere = np.ones(len(frame), dtype=bool)
        models = [(names, False, everywhere), ([*features, *names], spline, models[0][2])]
    said = class_indicators(labels_of(frame))
    judged = frame["judged"].to_numpy(dtype=bool)
    labelled = judged & (labels_of(frame) > 0)
    topics, n_topics = topic_codes(units_of(frame))
    known = np.unique(topics[labelled])
    splits = min(n_splits, len(known))
    if splits < 2:
        raise DataError(
            f"{len(known)} judged {'clusters' if CLUSTER in frame else 'topics'} have a label; fitting apart from them "
            "takes at least 2"
        )
    fold = np.full(n_topics, -1)
    fold[known] = np.random.default_rng(seed).permutation(len(known)) % splits
    probabilities = np.zeros((len(frame), len(CLASSES)))
    for number in range(splits):
        inside = fold[topics] == number
        seen = labelled & ~inside
        apart = fold[topics] == -1
        found = np.tile(said[seen].mean(axis=0), (len(frame), 1))
        for given, bent, complete in models:
            wanted = (inside | apart) & complete
            if (seen & complete).any() and wanted.any():
                model = fit_predictor(x.loc[seen & complete], given, bent, calibrate, penalty, seed)
                found[wanted] = model.predict_proba(x.loc[wanted])
        probabilities[inside] = found[inside]
        probabilities[apart] += found[apart] / splits
    return frame.assign(**dict(zip(PROBABILITY_COLUMNS, probabilities.T, strict=True)))


def ppi_shares(frame: pd.DataFrame, level: float = LEVEL, unseen: float = 0.0) -> pd.DataFrame:
    """Class shares of all topics from a judged sample, beside the classical estimates.

    `frame` has `qid`, `label`, `judged` (bool, the same for all rows of a topic), and `p1`..`p5` from a predictor that
    did not see the topic. It has `stratum` where the topics were drawn by strata, `probability` where each judged topic
    was drawn with its own (`weighted_means`, for the population alone). Rows of one topic are averaged.
    Returns a row per share, named as in `class_shares`: [share, estimate, lo, hi, effective_n, lam, classical,
    classical_lo, classical_hi, n_judged, n_topics]. The five classes and `judge_share_missing` add up to 1.
    effective_n: how many topics, drawn uniformly and judged, give that standard error classically. A missing verdict of
    a judged topic counts in `judge_share_missing` and in no class. A corrected share that is not inside (0, 1) gives
    way to the classical one; the other classes then make up the rest in proportion. A share that all or none of the
    judged topics have keeps its prediction, with the exact interval (Clopper-Pearson) of the labels. `unseen` is how
    many topics on which label and prediction differ by 1 are added to the variance, for predictions that are 0 or 1.
    With several of the judge's prompts the shares are means (ragauge.estimate.prompts). Intervals are for the
    population of the topics, or for these topics where `sample_target` is "topics". Where the frame has clusters,
    variances are over these (`powered_means`). Raises DataError where a stratum has fewer than two judged topics.
    """
    check_outcomes(frame, ("judged", *PROBABILITY_COLUMNS, *(["stratum"] if "stratum" in frame else [])))
    if frame.empty:
        raise DataError("outcomes: no rows, so there is no share to estimate")
    topics, n_topics = topic_codes(frame["qid"])
    said = over_prompts(frame, lambda one: class_indicators(labels_of(one)))
    y = _topic_means(_shares_of(said), topics, n_topics)
    p = frame[list(PROBABILITY_COLUMNS)].to_numpy(dtype=float)
    f = _topic_means(_shares_of(p), topics, n_topics)
    judged = _of_topic(frame, "judged", topics, n_topics).astype(bool)
    stratum = _of_topic(frame, "stratum", topics, n_topics) if "stratum" in frame else np.zeros(n_topics)
    clusters = None
    if CLUSTER in frame:
        clusters = _of_topic(frame.assign(**{CLUSTER: topic_codes(frame[CLUSTER])[0]}), CLUSTER, topics, n_topics)
    fixed = of_these_topics(frame) and not judged.all()
    if "probability" in frame:
        drawn_with = _of_topic(frame.fillna({"probability": 0.0}), "probability", topics, n_topics)
        found = weighted_means(y, f, judged, drawn_with, _APART, clusters)
    else:
        found = powered_means(y, f, judged, stratum, _APART, clusters, fixed)
    estimate = _add_up(found)
    variance = np.where(found.corrected, found.variance + unseen / found.n**2, found.classical_variance)
    classical_lo, classical_hi = share_limits(found.classical, found.classical_variance, found, level)
    lo, hi = share_limits(np.where(found.corrected, estimate, found.classical), variance, found, level)
    lo, hi = np.minimum(lo, estimate), np.maximum(hi, estimate)
    of_one = variance + fixed * found.spread / n_topics  # of what so many topics say of their population
    known = variance > 0
    table = pd.DataFrame(
        {
            "share": SHARES,
            "estimate": estimate,
            "lo": lo,
            "hi": hi,
            "effective_n": np.divide(found.spread, of_one, out=np.full_like(variance, found.n), where=known),
            "lam": np.where(found.kept, found.lam, 0.0),
            "classical": found.classical,
            "classical_lo": classical_lo,
            "classical_hi": classical_hi,
            "n_judged": int(judged.sum()),
            "n_topics": n_topics,
        }
    )
    if each := [ppi_shares(one, level, unseen) for one in drawn(frame)]:
        for names in (["estimate", "lo", "hi"], ["classical", "classical_lo", "classical_hi"]):
            by_prompt = np.array([one[names[0]] for one in each])
            table[names[1]], table[names[2]] = limits(table[names].to_numpy().T, by_prompt, level)
    return table


def _add_up(found: Powered) -> np.ndarray:
    """The shares [8], classical ones replacing those not `kept`, with the classes adding up to 1.

    A share that all or none of the judged topics have may be kept. The predictions alone then give it, as if they had
    no error, so that its interval is that of the labels.
    """
    apart, own = found.estimate[:_APART], found.kept[:_APART]
    rest = apart[own].sum()
    if own.any() and rest > 0:
        left = max(1 - found.classical[:_APART][~own].sum(), 0.0)
        classes = np.where(own, apart * left / rest, found.classical[:_APART])
    else:
        classes = found.classical[:_APART]
    return np.clip(_sums_of(classes[None, :])[0], 0, 1)


def _shares_of(classes: np.ndarray) -> np.ndarray:
    """Columns of SHARES from those of the five classes, the rest being missing, float64 [rows, 8]."""
    missing = np.maximum(1 - classes.sum(axis=1), 0)
    return _sums_of(np.column_stack([classes, np.where(missing > 1e-9, missing, 0.0)]))


def _sums_of(apart: np.ndarray) -> np.ndarray:
    """Columns of SHARES from those of the five classes and missing verdicts, float64 [rows, 8]."""
    hallucinated = apart[:, [c - 1 for c in HALLUCINATIONS]].sum(axis=1)
    return np.column_stack([apart, hallucinated, apart[:, len(CLASSES) - 1]])


def _topic_means(values: np.ndarray, topics: np.ndarray, n_topics: int) -> np.ndarray:
    rows = np.bincount(topics, minlength=n_topics)[:, None]
    return np.column_stack([np.bincount(topics, v, minlength=n_topics) for v in values.T]) / rows


def _of_topic(frame: pd.DataFrame, column: str, topics: np.ndarray, n_topics: int) -> np.ndarray:
    """A column's value of each topic, float64 [topics]; DataError if its rows disagree."""
    values = frame[column].to_numpy(dtype=float)
    of_topic = np.zeros(n_topics)
    of_topic[topics] = values
    apart = of_topic[topics] != values
    if apart.any():
        qid = frame["qid"].iloc[int(np.flatnonzero(apart)[0])]
        raise DataError(f"outcomes: column {column} differs between rows of qid={qid!r}")
    return of_topic


def share_limits(
    estimate: np.ndarray, variance: np.ndarray, found: Powered, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Limits on the logit scale (delta method, Student's t).

    Where all judged topics agree, or without variance, exact ones (Clopper-Pearson) of `found.n` draws.
    """
    from scipy.special import expit, logit
    from scipy.stats import beta, t

    by_variance = found.alone & inside(estimate) & (variance > 0)
    p = np.where(by_variance, estimate, 0.5)
    tail = (1 - level) / 2
    reach = t.isf(tail, found.df) * np.sqrt(variance) / (p * (1 - p))
    n, hits = found.n, np.clip(estimate, 0, 1) * found.n
    exact_lo = np.where(hits > 0, beta.ppf(tail, np.maximum(hits, 1e-9), n - hits + 1), 0.0)
    exact_hi = np.where(hits < n, beta.isf(tail, hits + 1, np.maximum(n - hits, 1e-9)), 1.0)
    return (
        np.where(by_variance, expit(logit(p) - reach), exact_lo),
        np.where(by_variance, expit(logit(p) + reach), exact_hi),
    )
