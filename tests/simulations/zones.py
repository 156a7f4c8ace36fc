"""How often a zone holds more wrong answers than it promises, on new topics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.special import expit

from ragauge.estimate import fit_zones

Risk = Callable[[np.ndarray], np.ndarray]
_FINE = (np.arange(100_000) + 0.5) / 100_000  # uniform scores of the population


def useless(score: np.ndarray) -> np.ndarray:
    """A little more than a tenth is not right, whatever the score: every zone is a failure."""
    return np.full_like(score, 0.1001)


def steep(score: np.ndarray) -> np.ndarray:
    """Not right with 1 - the logistic of 12 (score - 1/2); a tenth is not right above 0.48."""
    return 1 - expit(12 * (score - 0.5))


def middling(score: np.ndarray) -> np.ndarray:
    """The same with a slope of 8; a tenth is not right above 0.61."""
    return 1 - expit(8 * (score - 0.5))


def edge(score: np.ndarray) -> np.ndarray:
    """5 % are not right above 0.5, 40 % below: the best threshold is where the risk jumps."""
    return np.where(score > 0.5, 0.05, 0.4)


def rising(score: np.ndarray) -> np.ndarray:
    """What is assumed does not hold: the highest scores are not right more often (30 % above 0.9)."""
    return np.where(score > 0.9, 0.3, np.where(score > 0.5, 0.05, 0.5))


def broken_promises(
    risk: Risk, n: int, rows: int, trials: int, seed: int, missing: float = 0.0, level: float = 0.95
) -> tuple[float, float, float]:
    """How often over a tenth of a population's answers in the zone of right answers are not right, how often
    there is a zone, and the mean share of the answers that lie in it.

    n topics with `rows` answers each, whose scores are uniform and independent; of several answers to a topic
    half share their luck, and topics differ in how many answers have a score at all. `missing` of the
    verdicts are missing, which the population counts as not right as well.
    """
    rng = np.random.default_rng(seed)
    bad = missing + (1 - missing) * risk(_FINE)
    beyond = np.cumsum(bad[::-1])[::-1] / np.arange(len(bad), 0, -1)  # of the scores above each
    broken = found = 0
    share = 0.0
    for _ in range(trials):
        topics = np.repeat(np.arange(n), rng.integers(1, rows + 1, n) if rows > 1 else 1)
        size = len(topics)
        score, own, shared = rng.random(size), rng.random(size), rng.random(n)[topics]
        luck = np.where(rng.random(size) < 0.5, shared, own) if rows > 1 else own
        label = pd.array(np.where(luck < risk(score), 4, 5), dtype="Int8")
        label[rng.random(size) < missing] = pd.NA
        frame = pd.DataFrame({"qid": topics, "ir_score": score, "label": label})
        zone = fit_zones(frame, confidence=level).right
        if zone.n:
            found += 1
            share += zone.share
            broken += beyond[min(int(zone.value * len(bad)), len(bad) - 1)] > 0.1
    return broken / trials, found / trials, share / trials
