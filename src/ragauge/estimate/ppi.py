"""Judge a few topics, estimate the class shares of all: prediction-powered inference (PPI++).

The share of a class is the mean prediction over the topics that were not judged plus the mean error of the
prediction over those that were, lambda weighing the two (Angelopoulos, Duchi & Zrnic 2023, arXiv:2311.01453).
Estimate and standard error come from ppi-python. Own are: one lambda over all strata, since ppi-python tunes
one a call, which a stratum of ten topics cannot bear; the sum over strata (Fisch et al. 2024,
arXiv:2406.04291); and the logit scale, since a plain interval of a share near 0 or 1 covers too little
(docs/method.md).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import HALLUCINATIONS
from ragauge.estimate.intervals import LEVEL
from ragauge.estimate.outcomes import CLASSES, check_outcomes, class_indicators, labels_of, topic_codes
from ragauge.estimate.predictor import PROBABILITY_COLUMNS, fit_predictor

SHARES = (
    *(f"judge_share_{c}" for c in CLASSES),
    "judge_share_missing",
    "hallucination_share",
    "correct_share",
)


def choose_topics(
    predicted_p5: pd.Series,
    n: int,
    strata: int = 3,
    min_per_stratum: int = 20,
    seed: int = 0,
    design: Literal["neyman", "uniform"] = "neyman",
) -> pd.DataFrame:
    """Which topics to judge: [qid, stratum, judged], one row per topic, sorted by qid.

    `predicted_p5` is P(5) indexed by qid; a topic that occurs several times (once a retriever) counts with
    its mean, so that every retriever gets the same topics. `neyman`: strata of equal size by predicted P(5),
    at most `strata` and fewer where n or the topics do not give each its min_per_stratum; of stratum s a
    number in proportion to N_s * sqrt(mean p(1-p)), the spread that is left once P(5) is known, but at least
    min_per_stratum (Neyman 1934). `uniform`: one stratum. All topics where there are no more than n. A few
    strata of many topics are wanted: with five strata, 26 topics in the smallest, intervals of 95 % covered
    93 % (simulation of docs/method.md). Raises ConfigError for n, strata, min_per_stratum or design out of
    range, DataError for a p outside [0, 1].
    """
    if design not in ("neyman", "uniform"):
        raise ConfigError(f"design={design!r}; allowed are neyman and uniform")
    if n < 2 or strata < 1 or min_per_stratum < 2:
        raise ConfigError(
            f"n={n}, strata={strata}, min_per_stratum={min_per_stratum}; "
            "allowed are n >= 2, strata >= 1 and min_per_stratum >= 2"
        )
    p = predicted_p5.to_numpy(dtype=float)
    outside = ~((p >= 0) & (p <= 1))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise DataError(f"predicted P(5) of qid={predicted_p5.index[row]!r} is {p[row]}; allowed is 0..1")
    by_topic = pd.DataFrame({"p": p, "spread": p * (1 - p)}, index=predicted_p5.index).groupby(level=0).mean()
    n_topics = len(by_topic)
    n = min(n, n_topics)
    strata = 1 if design == "uniform" else max(1, min(strata, n // min_per_stratum))
    rank = np.empty(n_topics, dtype=int)
    rank[np.argsort(by_topic["p"].to_numpy(), kind="stable")] = np.arange(n_topics)
    stratum = rank * strata // max(n_topics, 1)
    sizes = np.bincount(stratum, minlength=strata)
    spread = np.sqrt(np.bincount(stratum, by_topic["spread"], minlength=strata) / np.maximum(sizes, 1))
    take = _allocate(sizes, sizes * spread, n, min(n, min_per_stratum))
    rng = np.random.default_rng(seed)
    judged = np.zeros(n_topics, dtype=bool)
    for s in range(strata):
        judged[rng.choice(np.flatnonzero(stratum == s), take[s], replace=False)] = True
    return pd.DataFrame({"qid": by_topic.index.to_numpy(), "stratum": stratum, "judged": judged})


def _allocate(sizes: np.ndarray, weights: np.ndarray, n: int, least: int) -> np.ndarray:
    """int [strata], n in all: the least sum of weights^2 / n_s, with n_s from `least` to the stratum's size.

    One topic at a time to where it lowers the sum most, which is exact for whole numbers (Wright 2012).
    """
    weights = weights if weights.sum() > 0 else sizes.astype(float)
    take = np.minimum(sizes, least)
    for _ in range(n - take.sum()):
        gain = np.where(take < sizes, weights**2 / (take * (take + 1.0)), -1.0)
        take[gain.argmax()] += 1
    return take


def cross_fit(
    frame: pd.DataFrame,
    features: Sequence[str] = ("ir_score",),
    spline: bool = False,
    calibrate: bool = False,
    penalty: float = 1.0,
    n_splits: int = 5,
    seed: int = 0,
) -> pd.DataFrame:
    """The frame with p1..p5 from predictors that never saw the topic they predict.

    `frame` has `qid`, `label`, `judged` (bool) and the features. Judged topics are predicted by a model of
    the other folds, the rest by the mean of all folds' models (cross-prediction, Zrnic & Candes 2024). Raises
    DataError for fewer than two judged topics with a label.
    """
    check_outcomes(frame, ("judged", *features))
    judged = frame["judged"].to_numpy(dtype=bool)
    labelled = judged & (labels_of(frame) > 0)
    topics, n_topics = topic_codes(frame["qid"])
    known = np.unique(topics[labelled])
    splits = min(n_splits, len(known))
    if splits < 2:
        raise DataError(f"{len(known)} judged topics have a label; fitting apart from them takes at least 2")
    fold = np.full(n_topics, -1)
    fold[known] = np.random.default_rng(seed).permutation(len(known)) % splits
    probabilities = np.zeros((len(frame), len(CLASSES)))
    for number in range(splits):
        inside = fold[topics] == number
        model = fit_predictor(frame.loc[labelled & ~inside], features, spline, calibrate, penalty, seed)
        apart = fold[topics] == -1
        probabilities[inside] = model.predict_proba(frame.loc[inside])
        probabilities[apart] += model.predict_proba(frame.loc[apart]) / splits
    return frame.assign(**dict(zip(PROBABILITY_COLUMNS, probabilities.T, strict=True)))


def ppi_shares(frame: pd.DataFrame, level: float = LEVEL) -> pd.DataFrame:
    """Class shares of all topics from the few that were judged, beside the classical estimates.

    `frame` has `qid`, `label`, `judged` (bool, the same for all rows of a topic), `p1`..`p5` from a predictor
    that did not see the topic, and `stratum` where the topics were drawn by strata. Rows of one topic are
    averaged. Returns a row per share, named as in `class_shares`: [share, estimate, lo, hi, effective_n, lam,
    classical, classical_lo, classical_hi, n_judged, n_topics]. effective_n: how many topics, drawn uniformly
    and judged, give that standard error classically. A missing verdict of a judged topic counts in
    `judge_share_missing` and in no class. A corrected share that is not inside (0, 1) gives way to the
    classical one, whose interval is exact (Clopper-Pearson) at 0 and 1. Raises DataError where a stratum has
    fewer than two judged topics.
    """
    check_outcomes(frame, ("judged", *PROBABILITY_COLUMNS, *(["stratum"] if "stratum" in frame else [])))
    topics, n_topics = topic_codes(frame["qid"])
    y = _topic_means(_shares_of(class_indicators(labels_of(frame)), labels_of(frame) == 0), topics, n_topics)
    p = frame[list(PROBABILITY_COLUMNS)].to_numpy(dtype=float)
    f = _topic_means(_shares_of(p, np.zeros(len(p))), topics, n_topics)
    judged = _of_topic(frame, "judged", topics, n_topics).astype(bool)
    stratum = _of_topic(frame, "stratum", topics, n_topics) if "stratum" in frame else np.zeros(n_topics)
    parts = []
    for s in np.unique(stratum):
        here = stratum == s
        drawn = here & judged
        if drawn.sum() < min(2, here.sum()):
            raise DataError(
                f"stratum {s:g}: {drawn.sum()} of {here.sum()} topics are judged; it takes at least 2"
            )
        parts.append((here.sum() / n_topics, y[drawn], f[drawn], f[here & ~judged]))

    lam = _tuned_lambda(parts)
    estimate, variance = _stratified(parts, lam, n_topics)
    classical, classical_variance = _stratified(parts, np.zeros(len(SHARES)), n_topics)
    outside = ~((estimate > 0) & (estimate < 1)) | (variance <= 0)
    lam = np.where(outside, 0.0, lam)
    estimate = np.where(outside, classical, estimate)
    variance = np.where(outside, classical_variance, variance)

    # What one topic's outcome varies by: within the strata and between them.
    means = np.array([part[1].mean(axis=0) for part in parts])
    within = sum(w * _variance(labels) for w, labels, _, _ in parts)
    spread = within + sum(part[0] * (m - classical) ** 2 for part, m in zip(parts, means, strict=True))
    n_kish = 1 / sum(w**2 / len(labels) for w, labels, _, _ in parts)
    lo, hi = _interval(estimate, variance, n_kish, level)
    classical_lo, classical_hi = _interval(classical, classical_variance, n_kish, level)
    return pd.DataFrame(
        {
            "share": SHARES,
            "estimate": estimate,
            "lo": lo,
            "hi": hi,
            "effective_n": np.divide(spread, variance, out=np.full_like(spread, n_kish), where=variance > 0),
            "lam": lam,
            "classical": classical,
            "classical_lo": classical_lo,
            "classical_hi": classical_hi,
            "n_judged": int(judged.sum()),
            "n_topics": n_topics,
        }
    )


def _shares_of(classes: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """float64 [rows, 8]: the columns of SHARES from those of the five classes."""
    hallucinated = classes[:, [c - 1 for c in HALLUCINATIONS]].sum(axis=1)
    return np.column_stack([classes, missing, hallucinated, classes[:, -1]])


def _topic_means(values: np.ndarray, topics: np.ndarray, n_topics: int) -> np.ndarray:
    rows = np.bincount(topics, minlength=n_topics)[:, None]
    return np.column_stack([np.bincount(topics, v, minlength=n_topics) for v in values.T]) / rows


def _of_topic(frame: pd.DataFrame, column: str, topics: np.ndarray, n_topics: int) -> np.ndarray:
    """float64 [topics]: a column's value of each topic; DataError where its rows do not agree."""
    values = frame[column].to_numpy(dtype=float)
    of_topic = np.zeros(n_topics)
    of_topic[topics] = values
    apart = of_topic[topics] != values
    if apart.any():
        qid = frame["qid"].iloc[int(np.flatnonzero(apart)[0])]
        raise DataError(f"outcomes: column {column} differs between rows of qid={qid!r}")
    return of_topic


def _variance(values: np.ndarray) -> np.ndarray:
    return values.var(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])


_Part = tuple[float, np.ndarray, np.ndarray, np.ndarray]  # weight, labels, their predictions, the others'


def _tuned_lambda(parts: Sequence[_Part]) -> np.ndarray:
    """float64 [shares] in [0, 1]: the lambda of the smallest variance of the stratified estimate.

    For one stratum it is that of ppi-python (`lam_optim_mode="element"`).
    """
    gain = cost = np.zeros(len(SHARES))
    for weight, y, f, f_others in parts:
        if len(f_others):
            covariance = ((y - y.mean(axis=0)) * (f - f.mean(axis=0))).mean(axis=0)
            variance = _variance(np.concatenate([f, f_others]))
            gain = gain + weight**2 * covariance / len(y)
            cost = cost + weight**2 * variance * (1 / len(y) + 1 / len(f_others))
    return np.clip(np.divide(gain, cost, out=np.zeros_like(gain), where=cost > 0), 0, 1)


def _stratified(parts: Sequence[_Part], lam: np.ndarray, n_topics: int) -> tuple[np.ndarray, np.ndarray]:
    """Estimate and its variance [shares]: of the population that all n_topics are a sample of."""
    of_parts = [_of_stratum(y, f, others, lam) for _, y, f, others in parts]
    weights = np.array([part[0] for part in parts])[:, None]
    means = np.array([mean for mean, _ in of_parts])
    variances = np.array([variance for _, variance in of_parts])
    estimate = (weights * means).sum(axis=0)
    between = (weights * (means - estimate) ** 2).sum(axis=0) / n_topics
    return estimate, (weights**2 * variances).sum(axis=0) + between


def _of_stratum(
    y: np.ndarray, f: np.ndarray, f_others: np.ndarray, lam: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    if not len(f_others):  # every topic is judged: nothing to predict
        return y.mean(axis=0), _variance(y) / len(y)
    from scipy.stats import norm

    with warnings.catch_warnings():  # ppi_py silences all warnings of the process when it is imported
        from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

    lo, hi = ppi_mean_ci(y, f, f_others, alpha=2 * norm.sf(1), lam=lam)  # one standard error to each side
    # ppi-python divides by n, which is too little where a stratum has ten judged topics.
    variance = ((hi - lo) / 2) ** 2 * len(y) / (len(y) - 1)
    return ppi_mean_pointestimate(y, f, f_others, lam=lam), variance


def _interval(
    estimate: np.ndarray, variance: np.ndarray, n: float, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Limits on the logit scale (delta method); exact ones of n draws where a share is 0 or 1 throughout."""
    from scipy.special import expit, logit
    from scipy.stats import beta, norm

    inside = (estimate > 0) & (estimate < 1) & (variance > 0)
    p = np.where(inside, estimate, 0.5)
    reach = norm.isf((1 - level) / 2) * np.sqrt(variance) / (p * (1 - p))
    hits = np.clip(estimate, 0, 1) * n
    tail = (1 - level) / 2
    exact_lo = np.where(hits > 0, beta.ppf(tail, np.maximum(hits, 1e-9), n - hits + 1), 0.0)
    exact_hi = np.where(hits < n, beta.isf(tail, hits + 1, np.maximum(n - hits, 1e-9)), 1.0)
    lo, hi = expit(logit(p) - reach), expit(logit(p) + reach)
    return np.where(inside, lo, exact_lo), np.where(inside, hi, exact_hi)
