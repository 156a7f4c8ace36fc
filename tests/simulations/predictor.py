"""The predictor's measures on topics that it has not seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import expit

from ragauge.estimate import cross_validate, fit_predictor
from ragauge.estimate._scoring import CalibrationError
from ragauge.estimate.intervals import topic_weights


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


def calibration_error(n: int, bend: float, trials: int, seed: int) -> tuple[float, float, float]:
    """The mean calibration error told, the true one, and how often its interval holds the true one.

    Given probabilities p of right answers to n topics; the true logit is that of p times `bend`, so that at 1
    they are perfectly calibrated.
    """
    rng = np.random.default_rng(seed)

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        logit = rng.normal(0, 1.2, n)
        return expit(logit), rng.random(n) < expit(bend * logit)

    def measure(p: np.ndarray, right: np.ndarray) -> CalibrationError:
        return CalibrationError(p, right, np.arange(len(p)), len(p), np.ones(len(p)))

    many = drawn(1_000_000)
    true = 0.0 if bend == 1 else float(measure(*many)(np.ones((1, len(many[0])), dtype=int))[0])
    found = []
    for trial in range(trials):
        of = measure(*drawn(n))
        replicates = np.concatenate([of(w) for w in topic_weights(n, 200, trial)])
        found.append((of(np.ones((1, n), dtype=int))[0], *np.quantile(replicates, [0.025, 0.975])))
    value, lo, hi = np.array(found).T
    return float(value.mean()), true, float(np.mean((lo <= true) & (true <= hi)))


def plain_calibration_error(n: int, bend: float, trials: int, seed: int) -> float:
    """The mean of Σ_b n_b / n |observed - predicted|, the calibration error of Naeini et al. 2015."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(trials):
        logit = rng.normal(0, 1.2, n)
        p, right = expit(logit), rng.random(n) < expit(bend * logit)
        gap = np.bincount((p * 10).astype(int), right - p, minlength=10)
        found.append(np.abs(gap).sum() / n)
    return float(np.mean(found))


def outside_error(spline: bool, trials: int, seed: int) -> tuple[float, float]:
    """The lowest P(right) told at scores outside of the fit's, and the mean absolute error there.

    300 topics score between 0.3 and 0.6 in the fit; the truth is a straight logit over [0, 1], P(right) from
    0.12 to 0.88.
    """
    rng = np.random.default_rng(seed)
    at = np.append(np.linspace(0, 0.3, 31), np.linspace(0.6, 1, 41))
    grid = pd.DataFrame({"qid": np.arange(len(at)).astype(str), "ir_score": at})
    found = []
    for _ in range(trials):
        score = rng.uniform(0.3, 0.6, 300)
        right = rng.random(300) < expit(4 * (score - 0.5))
        label = pd.array(np.where(right, 5, 4), dtype="Int8")
        frame = pd.DataFrame({"qid": np.arange(300).astype(str), "ir_score": score, "label": label})
        p = fit_predictor(frame, spline=spline).predict_proba(grid)[:, 4]
        found.append((p.min(), np.abs(p - expit(4 * (at - 0.5))).mean()))
    lowest, error = np.array(found).T
    return float(lowest.min()), float(error.mean())
