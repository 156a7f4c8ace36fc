"""The predictor's measures on topics that it has not seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import expit

from ragauge.estimate import cross_validate, fit_predictor


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
