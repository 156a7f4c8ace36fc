"""How often a gate calls a sweep regressed or passes it, beside what is true."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ragauge.estimate.plan import topics_for_mean
from ragauge.plugins.gate.gating import SECOND_LOOK, Paired, decide, paired_test, topics_to_decide
from ragauge.plugins.gate.rules import ALPHA

SYSTEMS = 3


def job(rng: np.random.Generator, hard: np.ndarray, worse: float = 0.0) -> dict[str, np.ndarray]:
    """IR score, right answers, hallucinations and F1 of one job over topics of this difficulty.

    `worse` is taken off its scores and off the chance of a right answer.
    """
    n = len(hard)
    right = rng.random(n) < np.clip(0.2 + 0.6 * hard - worse, 0, 1)
    overlap = np.where(right, rng.beta(4, 2, n), np.where(rng.random(n) < 0.5, 0.0, rng.beta(1, 4, n)))
    return {
        "ir_score": np.clip(hard + rng.normal(0, 0.2, n) - worse, 0, 1),
        "correct_share": right.astype(float),
        "hallucination_share": (~right & (rng.random(n) < 0.4)).astype(float),
        "f1": overlap,
    }


def gates(n: int, tolerance: float, trials: int, seed: int, worse: float = 0.0) -> tuple[float, float]:
    """Shares of pairs of sweeps whose gate has a regression, and of those that pass in everything.

    Each sweep has three systems, each held to its own in the other sweep by four metrics: twelve comparisons,
    corrected together.
    """
    rng = np.random.default_rng(seed)
    regressed, passed = 0, 0
    for _ in range(trials):
        hard = rng.random(n)
        verdicts = decide(_pair_of_sweeps(rng, hard, tolerance, worse))
        regressed += "regressed" in verdicts
        passed += set(verdicts) == {"pass"}
    return regressed / trials, passed / trials


def _pair_of_sweeps(rng: np.random.Generator, hard: np.ndarray, tolerance: float, worse: float) -> list[Paired]:
    found = []
    for _ in range(SYSTEMS):
        base, new = job(rng, hard), job(rng, hard, worse)
        found += [
            paired_test(new[metric], base[metric], tolerance, higher=metric != "hallucination_share") for metric in base
        ]
    return found


def few_topics_regressed(n: int, p: float, trials: int, seed: int) -> float:
    """How often one share with tolerance 0 is called regressed where both systems have it at the rate p."""
    rng = np.random.default_rng(seed)
    pairs = (rng.random((2, n)) < p for _ in range(trials))
    return sum(decide([paired_test(*pair.astype(float), 0.0)]) == ["regressed"] for pair in pairs) / trials


def wrongly_passed(n: int, rate: float, tolerance: float, trials: int, seed: int) -> float:
    """How often a score that drops by 1 on a `rate` of the topics, and is the same on the others, passes."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(trials):
        base = np.full(n, 0.999)
        hits += decide([paired_test(base - 0.999 * (rng.random(n) < rate), base, tolerance)]) == ["pass"]
    return hits / trials


# Long tails of differences, [topics] each, less their mean.
TAILS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "exponential": lambda rng, n: np.minimum(rng.exponential(0.15, n), 1) - 0.15 * (1 - np.exp(-1 / 0.15)),
    "lognormal": lambda rng, n: 0.1 * (rng.lognormal(0, 1, n) - np.exp(0.5)),
    "lognormal, sigma 1.5": lambda rng, n: 0.05 * (rng.lognormal(0, 1.5, n) - np.exp(1.125)),
    "normal": lambda rng, n: rng.normal(0, 0.15, n),
    "one in fifty by 1": lambda rng, n: (rng.random(n) < 0.02) - 0.02 + rng.normal(0, 0.001, n),
    "one in ten by 1": lambda rng, n: (rng.random(n) < 0.1) - 0.1 + rng.normal(0, 0.001, n),
}


def skewed_passed(tail: str, n: int, tolerance: float, trials: int, seed: int, worse: bool = True) -> float:
    """How often a score passes whose losses have this tail: worse by the tolerance on average, or equal."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(trials):
        d = -TAILS[tail](rng, n) - tolerance * worse
        hits += decide([paired_test(d, np.zeros(n), tolerance)]) == ["pass"]
    return hits / trials


def skewed_regressed(tail: str, n: int, trials: int, seed: int) -> float:
    """How often a score is called regressed whose gains have this tail, and that is equal on average."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(trials):
        hits += decide([paired_test(TAILS[tail](rng, n), np.zeros(n), 0.0)]) == ["regressed"]
    return hits / trials


def passed_in_two_looks(n: int, tolerance: float, trials: int, seed: int, level: float = SECOND_LOOK) -> float:
    """How often a score that is worse by its tolerance passes on n topics or, where that is inconclusive, on as
    many as the gate asks for (at most 50 n), at `level` times alpha.
    """
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(trials):
        d = rng.normal(-tolerance, 0.2, n)
        found = paired_test(d, np.zeros(n), tolerance)
        verdicts = decide([found])
        if verdicts == ["inconclusive"]:
            more = int(min(topics_to_decide(found), 50 * n)) - n
            d = np.append(d, rng.normal(-tolerance, 0.2, more))
            verdicts = decide([paired_test(d, np.zeros(len(d)), tolerance, alpha=level * ALPHA)], level * ALPHA)
        hits += verdicts == ["pass"]
    return hits / trials


def power(shares: bool, difference: float, tolerance: float, verdict: str, trials: int, seed: int) -> tuple[int, float]:
    """Topics that `topics_for_mean` plans for a power of 80 %, and how often the verdict comes on as many.

    The new system differs from the baseline by `difference` (below 0 is worse).
    """
    rng = np.random.default_rng(seed)
    make = _judged if shares else _scored
    spread = float(make(rng, difference, 200_000).std(ddof=1))
    n = int(topics_for_mean(spread, abs(difference + tolerance), 0.8, 0.1))
    hits = 0
    for _ in range(trials):
        d = make(rng, difference, n)
        base = (d < 0).astype(float) if shares else np.full(n, 0.5)
        hits += decide([paired_test(base + d, base, tolerance)]) == [verdict]
    return n, hits / trials


def _scored(rng: np.random.Generator, difference: float, n: int) -> np.ndarray:
    """Differences of scores around `difference`: a half of the topics differ otherwise, the rest by that."""
    moved = np.where(rng.random(n) < 0.5, rng.uniform(-0.4, 0.4, n), 0.0)
    return np.clip(moved + difference, -0.5, 0.5)


def _judged(rng: np.random.Generator, difference: float, n: int) -> np.ndarray:
    """1, 0 and -1: a fifth of the topics differ, as often as the difference asks for to either side."""
    lost = (0.2 - difference) / 2
    u = rng.random(n)
    return np.where(u < lost, -1.0, np.where(u < 0.2, 1.0, 0.0))
