"""Simulations with known truth, shared by tests/validity and by benchmarks/validity.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import binom
from scipy.stats import t as t_distribution

from ragauge.estimate import Estimate, cross_validate, fit_predictor, fit_threshold
from ragauge.estimate.intervals import wilson_interval
from ragauge.estimate.pairs import mcnemar_p, sign_flip_p

SHARES = np.arange(0.005, 0.9951, 0.005)
Interval = Callable[[np.ndarray, np.ndarray], Estimate]  # of values and the topic of each


def binomial_coverage(interval: Interval, n: int, shares: np.ndarray = SHARES) -> np.ndarray:
    """float64 [shares]: how often the interval of n yes-or-no topics holds the true share, enumerated.

    No draws: each number of hits counts with its binomial probability.
    """
    topics = np.arange(n)
    found = [interval((topics < hits).astype(float), topics) for hits in range(n + 1)]
    lo, hi = np.array([e.lo for e in found]), np.array([e.hi for e in found])
    inside = (lo <= shares[:, None]) & (shares[:, None] <= hi)
    return (binom.pmf(np.arange(n + 1), n, shares[:, None]) * inside).sum(axis=1)


def clustered_coverage(
    interval: Interval, share: float, correlation: float, n_topics: int, n_rows: int, trials: int, seed: int
) -> float:
    """How often the interval holds the share, with n_rows yes-or-no rows a topic (beta-binomial)."""
    rng = np.random.default_rng(seed)
    size = (trials, n_topics)
    within = 1 / correlation - 1 if correlation else 0.0
    of_topic = rng.beta(share * within, (1 - share) * within, size) if correlation else np.full(size, share)
    values = rng.random((*size, n_rows)) < of_topic[:, :, None]
    topics = np.repeat(np.arange(n_topics), n_rows)
    found = [interval(trial.ravel().astype(float), topics) for trial in values]
    return float(np.mean([e.lo <= share <= e.hi for e in found]))


# Distributions of a topic's score: how many are 1, how many are 0, and Beta(a, b) for the others.
SCORES = {
    "95 % are 1, the rest uniform": (0.95, 0.0, 1.0, 1.0),
    "98 % are 1, the rest uniform": (0.98, 0.0, 1.0, 1.0),
    "99 % are 1, the rest uniform": (0.99, 0.0, 1.0, 1.0),
    "half are 1, a fifth 0, the rest uniform": (0.5, 0.2, 1.0, 1.0),
    "70 % are 1, the rest Beta(5, 2)": (0.7, 0.0, 5.0, 2.0),
    "Beta(2, 2)": (0.0, 0.0, 2.0, 2.0),
    "Beta(20, 1)": (0.0, 0.0, 20.0, 1.0),
}


def score_coverage(interval: Interval, name: str, n: int, trials: int, seed: int) -> float:
    """How often the interval of a mean score of n topics holds the true mean."""
    ones, zeros, a, b = SCORES[name]
    rng = np.random.default_rng(seed)
    kind, other = rng.random((trials, n)), rng.beta(a, b, (trials, n))
    values = np.where(kind < ones, 1.0, np.where(kind < ones + zeros, 0.0, other))
    mean = ones + (1 - ones - zeros) * a / (a + b)
    topics = np.arange(n)
    found = [interval(trial, topics) for trial in values]
    return float(np.mean([e.lo <= mean <= e.hi for e in found]))


def bootstrap_t(values: np.ndarray, topics: np.ndarray, n_boot: int = 400) -> Estimate:
    """The mean of one value a topic with a bootstrap-t interval (Efron & Tibshirani 1993, section 12.5)."""
    n, mean, error = len(values), values.mean(), values.std() / np.sqrt(len(values))
    weights = np.random.default_rng(0).multinomial(n, [1 / n] * n, size=n_boot) / n
    means = weights @ values
    errors = np.sqrt(np.maximum(weights @ values**2 - means**2, 0) / n)
    t = np.divide(means - mean, errors, out=np.zeros(n_boot), where=errors > 1e-9)
    low, high = np.quantile(t, [0.025, 0.975])
    return Estimate(float(mean), max(float(mean - high * error), 0.0), min(float(mean - low * error), 1.0), n)


def logit_t(values: np.ndarray, topics: np.ndarray) -> Estimate:
    """The mean of one value a topic with a logit-t interval; Wilson's where the mean is 0 or 1."""
    n, mean = len(values), float(values.mean())
    if not 0 < mean < 1:
        return Estimate(mean, *wilson_interval(mean, n), n)
    reach = t_distribution.isf(0.025, n - 1) * values.std(ddof=1) / np.sqrt(n) / (mean * (1 - mean))
    return Estimate(mean, float(expit(logit(mean) - reach)), float(expit(logit(mean) + reach)), n)


def hallucination_rejections(
    rates: tuple[float, float], shared: float, n: int, trials: int, seed: int
) -> float:
    """How often the paired test calls two systems with these hallucination rates different at 5 %.

    On a `shared` part of the n topics the same topics are hard for both systems.
    """
    rng = np.random.default_rng(seed)
    size = (n, trials)
    common, ease = rng.random(size) < shared, rng.random(size)
    first, second = (np.where(common, ease, rng.random(size)) < rate for rate in rates)
    return float(np.mean(mcnemar_p(first.astype(float) - second) < 0.05))


def sign_flip_rejections(skewed: bool, n: int, trials: int, seed: int) -> float:
    """How often the sign-flip test rejects at 5 % where the mean difference is 0.

    Skewed: nine topics of ten lose 0.1 and one wins 0.9, so that the two systems are not exchangeable.
    """
    rng = np.random.default_rng(seed)
    size = (n, trials)
    differences = np.where(rng.random(size) < 0.1, 0.9, -0.1) if skewed else rng.normal(0, 0.3, size)
    return float(np.mean(sign_flip_p(differences, seed) < 0.05))


def predicted(n: int, useless: bool, rng: np.random.Generator) -> pd.DataFrame:
    """Outcomes of n topics: half are right for a useless score, else P(right) rises from 0.12 to 0.88."""
    score = rng.random(n)
    right = rng.random(n) < (0.5 if useless else expit(4 * (score - 0.5)))
    label = pd.array(np.where(right, 5, 4), dtype="Int8")
    return pd.DataFrame({"qid": np.arange(n).astype(str), "ir_score": score, "label": label})


def mean_auc(n: int, useless: bool, trials: int, seed: int) -> float:
    """The mean cross-validated AUC for right answers."""
    rng = np.random.default_rng(seed)
    found = [
        cross_validate(predicted(n, useless, rng), seed=trial, n_boot=0).estimates["auc_correct"].value
        for trial in range(trials)
    ]
    return float(np.nanmean(found))


def log_loss_coverage(n: int, trials: int, seed: int) -> tuple[float, float]:
    """How often the interval of the log loss holds that of its own fits on new topics, and that of all fits.

    The fits of a data set are the models of its folds; their loss is taken on 4,000 further topics. Of all
    fits: the mean of that loss over the data sets.
    """
    rng = np.random.default_rng(seed)
    others = predicted(4000, False, rng)
    wrong = (others["label"] == 4).to_numpy(dtype=bool)
    found = []
    for trial in range(trials):
        frame = predicted(n, False, rng)
        validated = cross_validate(frame, seed=trial, n_boot=400)
        fold, losses = validated.out_of_fold["fold"].to_numpy(), []
        for number in range(validated.n_splits):
            p = fit_predictor(frame[fold != number]).predict_proba(others)
            losses.append(-np.log(np.where(wrong, p[:, 3], p[:, 4])).mean())
        e = validated.estimates["log_loss"]
        found.append((e.lo, e.hi, np.mean(losses)))
    lo, hi, own = np.array(found).T
    return float(np.mean((lo <= own) & (own <= hi))), float(np.mean((lo <= own.mean()) & (own.mean() <= hi)))


def useful_thresholds(n: int, slope: float, share: float, trials: int, seed: int) -> tuple[float, float]:
    """How often k is called useful, and how often its accuracy on the fit beats the constant answer.

    Scores are uniform; an answer is right with the logistic of slope * (score - 1/2), `share` at the middle.
    With a slope of 0 the score is useless.
    """
    rng = np.random.default_rng(seed)
    useful = beats = 0
    for trial in range(trials):
        score = rng.random(n)
        right = rng.random(n) < expit(logit(share) + slope * (score - 0.5))
        k = fit_threshold(score, right, "above", seed=trial, n_splits=5)
        useful += k.useful
        beats += k.accuracy > k.base_rate
    return useful / trials, beats / trials


def threshold_coverage(n: int, rows: int, slope: float, trials: int, seed: int) -> tuple[float, float]:
    """How often the best k, 0.6, is one of those not rejected, and how often it lies between their ends.

    Of several rows a topic half share their luck.
    """
    rng = np.random.default_rng(seed)
    inside = between = 0
    topics = np.repeat(np.arange(n), rows)
    for _ in range(trials):
        score, own, shared = rng.random(n * rows), rng.random(n * rows), rng.random(n)[topics]
        luck = np.where(rng.random(n * rows) < 0.5, shared, own) if rows > 1 else own
        k = fit_threshold(score, luck < expit(slope * (score - 0.6)), "above", topics)
        inside += any(0.6 in part for part in k.not_rejected)
        between += k.set_min <= 0.6 <= k.set_max
    return inside / trials, between / trials


def difference_coverage(interval: Callable[[np.ndarray], Estimate], won: float, lost: float, n: int) -> float:
    """How often the interval of a paired difference of shares holds won - lost, enumerated over n topics.

    `won` and `lost` are the probabilities that only the one or only the other side counts.
    """
    from scipy.stats import multinomial

    truth, covered = won - lost, 0.0
    for a in range(n + 1):
        for b in range(n + 1 - a):
            weight = float(multinomial.pmf([a, b, n - a - b], n, [won, lost, 1 - won - lost]))
            if weight > 1e-12:
                found = interval(np.repeat([1.0, -1.0, 0.0], [a, b, n - a - b]))
                covered += weight * (found.lo <= truth + 1e-12 and truth - 1e-12 <= found.hi)
    return covered
