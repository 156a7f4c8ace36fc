"""Simulations of shares that are foreseen from a predictor: a training of known labels, a window of known shares."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from ragauge.estimate import bounded_mean, fit_predictor
from ragauge.plugins.foresee.drift import ALPHA, drift
from ragauge.plugins.foresee.reference import Reference
from ragauge.plugins.foresee.shares import foreseen_shares

FEATURES = ("coverage", "similarity", "agreement")
HOW = {"spline": False, "calibrate": False, "penalty": 1.0}
SETTINGS = ("alike", "shifted", "bent", "bent and shifted", "rare", "other answers")
_SYSTEMS = 3  # that answered each topic of the training


def answers(kind: str, n_topics: int, systems: int, window: bool, rng: np.random.Generator) -> pd.DataFrame:
    """Rows [qid, label, FEATURES] of answers; half of what makes them right belongs to the topic."""
    topics = rng.normal(size=(n_topics, 1, 3))
    x = np.sqrt(0.5) * topics + np.sqrt(0.5) * rng.normal(size=(n_topics, systems, 3))
    if window and "shifted" in kind:
        x = x + np.array([0.7, -0.7, 0.0])
    score = 0.9 * x[..., 0] + 0.6 * x[..., 1] + (0.8 * (x[..., 0] ** 2 - 1) if "bent" in kind else 0.0)
    score = score + (-4.0 if kind == "rare" else 0.2) - (0.8 if window and kind == "other answers" else 0.0)
    luck = np.sqrt(0.5) * rng.normal(size=(n_topics, 1)) + np.sqrt(0.5) * rng.normal(size=(n_topics, systems))
    right = _uniform(luck) < 1 / (1 + np.exp(-score))
    wrong = np.where(rng.random((n_topics, systems)) < 1 / (1 + np.exp(-x[..., 2])), 4, 1)
    frame = pd.DataFrame(x.reshape(-1, 3), columns=list(FEATURES))
    frame["qid"] = np.repeat(np.arange(n_topics), systems).astype(str)
    return frame.assign(label=pd.array(np.where(right, 5, wrong).ravel(), dtype="Int8"))


def _uniform(normal: np.ndarray) -> np.ndarray:
    from scipy.stats import norm

    return np.asarray(norm.cdf(normal))


@cache
def truth_of(kind: str) -> tuple[float, float]:
    """Shares of right answers and of hallucinations in the window's population, of 400,000 topics."""
    label = answers(kind, 400_000, 1, True, np.random.default_rng(99))["label"]
    return float((label == 5).mean()), float((label == 4).mean())


def held(kind: str, n_training: int, n_window: int, trials: int, seed: int) -> dict[str, float]:
    """Of 95 % intervals of shares of a window, how many hold the truth: of right answers and of hallucinations.

    `topics` is that of right answers with an interval of the window's topics alone. `these` holds the share of right
    answers among these very answers. width, bias: of right answers.
    """
    truth, found = truth_of(kind), []
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial])
        training = answers(kind, n_training, _SYSTEMS, False, rng)
        window = answers(kind, n_window, 1, True, rng)
        p = fit_predictor(training, FEATURES).predict_proba(window)
        reference = Reference(training, HOW, n_training, {})
        shares = foreseen_shares(p, window, reference, FEATURES).estimates
        these = foreseen_shares(p, window, reference, FEATURES, of_topics=True).estimates["correct_share"]
        right, hallucination = shares["correct_share"], shares["hallucination_share"]
        alone = bounded_mean(p[:, 4], window["qid"])
        judged = float((window["label"] == 5).mean())
        found.append(
            (
                right.lo <= truth[0] <= right.hi,
                hallucination.lo <= truth[1] <= hallucination.hi,
                alone.lo <= truth[0] <= alone.hi,
                these.lo <= judged <= these.hi,
                right.hi - right.lo,
                right.value - truth[0],
            )
        )
    names = ("right", "hallucination", "topics", "these", "width", "bias")
    return dict(zip(names, np.array(found, dtype=float).mean(axis=0), strict=True))


def drifts(kind: str, trials: int, seed: int) -> float:
    """How often drift of some feature is found at 5 %: 200 training topics of three systems, 400 answers."""
    found = []
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial])
        training, window = answers(kind, 200, _SYSTEMS, False, rng), answers(kind, 400, 1, True, rng)
        found.append((drift(window, Reference(training, HOW, 200, {}), FEATURES)["p_holm"] < ALPHA).any())
    return float(np.mean(found))
