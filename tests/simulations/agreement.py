"""How often the interval of Cohen's kappa holds that of the population."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragauge.estimate import judge_agreement
from ragauge.estimate.agreement import kappa_estimate

SHARES = np.array([0.1, 0.05, 0.1, 0.35, 0.4])  # of the classes that people give
EASE = np.array([0.95, 0.65])  # how often the judge agrees on the easier and the harder half of the topics


def true_kappa() -> float:
    """Kappa of the population: the judge agrees with EASE, else it draws one of the five classes."""
    equal = float(EASE.mean() + (1 - EASE.mean()) / 5)
    marginal = EASE.mean() * SHARES + (1 - EASE.mean()) / 5
    by_chance = float((SHARES * marginal).sum())
    return (equal - by_chance) / (1 - by_chance)


ERRING = {"80 % right": [0.05, 0.05, 0.05, 0.05, 0.8], "95 % right": [0.02, 0.01, 0.01, 0.01, 0.95], "mixed": SHARES}


def kappa_of_an_erring_judge(name: str, errs: float, n: int, trials: int, seed: int) -> tuple[float, float]:
    """How often the interval holds kappa, and its mean width, where the judge draws any class in `errs` of n topics.

    Of the data sets where kappa is defined.
    """
    shares = np.array(ERRING[name])
    table = np.diag(shares * (1 - errs)) + np.outer(shares, np.full(5, errs / 5))
    chance = float(table.sum(axis=1) @ table.sum(axis=0))
    truth = (float(np.trace(table)) - chance) / (1 - chance)
    rng, qids, held, widths = np.random.default_rng(seed), pd.Series(np.arange(n)), [], []
    for _ in range(trials):
        people = rng.choice(5, n, p=shares) + 1
        judge = np.where(rng.random(n) < errs, rng.integers(1, 6, n), people)
        found = kappa_estimate(people, judge, qids, 0.95)
        if not np.isnan(found.value):
            held.append(found.lo <= truth <= found.hi)
            widths.append(found.hi - found.lo)
    return float(np.mean(held)), float(np.mean(widths))


def kappa_coverage(n: int, rows: int, trials: int, seed: int) -> float:
    """Share of data sets of n topics, `rows` answers each, whose 95 % interval holds `true_kappa`."""
    rng = np.random.default_rng(seed)
    truth, held = true_kappa(), []
    qid = np.repeat(np.arange(n).astype(str), rows)
    key = pd.DataFrame({"qid": qid, "system": np.tile(np.arange(rows).astype(str), n)})
    for _ in range(trials):
        people = rng.choice(5, n * rows, p=SHARES) + 1
        agrees = rng.random(n * rows) < np.repeat(EASE[rng.integers(0, 2, n)], rows)
        judge = np.where(agrees, people, rng.integers(1, 6, n * rows))
        found = judge_agreement(key.assign(label=judge), key.assign(label=people), ["qid", "system"]).kappa
        held.append(found.lo <= truth <= found.hi)
    return float(np.mean(held))
