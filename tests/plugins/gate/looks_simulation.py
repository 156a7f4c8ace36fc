"""How often gates that are looked at as topics come err and decide, and on how many topics, beside what is true."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from plugins.gate.gating_simulation import SYSTEMS, TAILS, job
from ragauge.estimate.intervals import bounded_mean
from ragauge.estimate.plan import topics_for_mean
from ragauge.plugins.gate.gating import _by_sample, decide, paired_test
from ragauge.plugins.gate.looks import SIDE, level_of, p_beyond, repeated_p
from ragauge.plugins.gate.rules import ALPHA

FIVE = tuple(k / 5 for k in range(1, 6))
TEN = tuple(k / 10 for k in range(1, 11))
UNEQUAL = (0.12, 0.37, 0.45, 0.86, 1.0)
UNEQUAL_TEN = (0.05, 0.2, 0.24, 0.3, 0.45, 0.52, 0.55, 0.8, 0.9, 1.0)
Draw = Callable[[np.random.Generator, int], np.ndarray]


def levels(alpha: float, shares: Sequence[float]) -> list[float]:
    return [level_of(alpha, shares[: k + 1]) for k in range(len(shares))]


def normal(mean: float, spread: float = 0.2) -> Draw:
    return lambda rng, n: rng.normal(mean, spread, n)


def lognormal(mean: float) -> Draw:
    """Losses with a long tail."""
    return lambda rng, n: mean - TAILS["lognormal"](rng, n)


def yes_or_no(mean: float, differ: float = 0.2) -> Draw:
    """Differences 1, 0 and -1, the share `differ` of which is not 0."""
    return lambda rng, n: rng.choice([-1.0, 0.0, 1.0], n, p=[(differ - mean) / 2, 1 - differ, (differ + mean) / 2])


def decided(
    draw: Draw, n: int, tolerance: float, shares: Sequence[float], trials: int, seed: int, naive: bool = False
) -> tuple[float, float, float]:
    """Shares of trials that pass and that regress, and the mean share of the n topics at which that is decided.

    The looks are at `shares` of n topics; the first one that decides ends a trial. `naive` has each at alpha.
    """
    rng = np.random.default_rng(seed)
    at = [ALPHA] * len(shares) if naive else levels(ALPHA, shares)
    passed = regressed = used = 0.0
    for _ in range(trials):
        d = draw(rng, n)
        base = (d < 0).astype(float) if np.isin(d, (-1.0, 0.0, 1.0)).all() else np.zeros(n)
        for share, level in zip(shares, at, strict=True):
            m = round(share * n)
            found = paired_test(base[:m] + d[:m], base[:m], tolerance, alpha=max(level, 1e-12))
            if found.p_regressed < level or found.p_pass < level:
                break
        regressed += found.p_regressed < level
        passed += found.p_regressed >= level > found.p_pass
        used += share
    return passed / trials, regressed / trials, used / trials


def sampled_passed(topics: int, n: int, shares: Sequence[float], trials: int, seed: int) -> float:
    """How often right answers that are worse by a tolerance of 0.05 pass at a look at a growing sample of n judged
    topics, the others of `topics` predicted.
    """
    rng = np.random.default_rng(seed)
    at, hits = levels(ALPHA, shares), 0
    for _ in range(trials):
        d = yes_or_no(-0.05)(rng, topics)
        predicted = np.clip(0.5 * d + rng.normal(0, 0.2, topics), -1, 1)
        for share, level in zip(shares, at, strict=True):
            judged = np.arange(topics) < round(share * n)
            found = _by_sample(d, predicted, judged, np.zeros(topics), None, 0.05, max(level, 1e-12), True)
            if found.p_pass < level:
                hits += 1
                break
    return hits / trials


def planned(
    times: float, difference: float, shares: Sequence[float], trials: int, seed: int
) -> tuple[int, float, float, float]:
    """The largest number of topics, how often a system passes at a look, the mean share of the topics until it is
    decided, and how often it passes in one look at all.

    The largest number has a power of 80 % to pass, in one look, a system that is better than its tolerance allows
    by `difference`; the system is so by `times` the difference.
    """
    n = int(topics_for_mean(0.2, difference, 0.8, 2 * ALPHA))
    draw = normal((times - 1) * difference)
    passed, _, used = decided(draw, n, difference, shares, trials, seed)
    return n, passed, used, decided(draw, n, difference, (1.0,), trials, seed)[0]


def gates(n: int, shares: Sequence[float], trials: int, seed: int) -> float:
    """Share of pairs of equal sweeps whose gate of twelve comparisons has a regression at any of its looks."""
    rng = np.random.default_rng(seed)
    at, hits = levels(ALPHA, shares), 0
    for _ in range(trials):
        hard = rng.random(n)
        pairs = [(job(rng, hard), job(rng, hard)) for _ in range(SYSTEMS)]
        for k, share in enumerate(shares):
            m = round(share * n)
            found = [
                paired_test(new[name][:m], base[name][:m], 0.0, name != "hallucination_share", alpha=max(at[k], 1e-12))
                for new, base in pairs
                for name in new
            ]
            # Where p is not below the look's level, the corrected one is not below alpha.
            corrected = [
                repeated_p(one.p_regressed, shares[: k + 1]) if one.p_regressed < at[k] else 1.0 for one in found
            ]
            if "regressed" in decide([replace(one, p_regressed=p) for one, p in zip(found, corrected, strict=True)]):
                hits += 1
                break
    return hits / trials


def minimum_passed(share: float, n: int, shares: Sequence[float], trials: int, seed: int, naive: bool = False) -> float:
    """How often a share of right answers passes a minimum that it has exactly, at any look."""
    rng = np.random.default_rng(seed)
    at = [SIDE] * len(shares) if naive else levels(SIDE, shares)
    hits = 0
    for _ in range(trials):
        right = (rng.random(n) < share).astype(float)
        for part, level in zip(shares, at, strict=True):
            found = bounded_mean(right[: round(part * n)])
            if p_beyond(found.value, found.lo, share) < level:
                hits += 1
                break
    return hits / trials


def stopped(difference: float, n: int, shares: Sequence[float], trials: int, seed: int) -> dict[str, float]:
    """What holds of right answers once judging has stopped at the look that decided against a tolerance of 0.05.

    A fifth of n topics differ from a baseline that is right in 0.6, by `difference` on average. used: the mean share of
    the topics that were judged. share: how often the ordinary 95 % interval holds the system's true share, share_whole
    with all topics. below, above: how often the limits of the difference, at the look's level, miss the truth. bias of
    the difference.
    """
    rng = np.random.default_rng(seed)
    at = levels(ALPHA, shares)
    found = []
    for _ in range(trials):
        base = rng.random(n) < 0.6
        # Of those that are right a share is lost, of the others one won, so that a fifth differ.
        lost, won = (0.1 - difference / 2) / 0.6, (0.1 + difference / 2) / 0.4
        own = np.where(base, rng.random(n) >= lost, rng.random(n) < won).astype(float)
        for share, level in zip(shares, at, strict=True):
            m = round(share * n)
            pair = paired_test(own[:m], base[:m].astype(float), 0.05, alpha=max(level, 1e-12))
            if pair.p_regressed < level or pair.p_pass < level:
                break
        true = 0.6 + difference
        held = [e.lo <= true <= e.hi for e in (bounded_mean(own[:m]), bounded_mean(own))]
        found.append((m / n, *held, pair.lo > difference, pair.hi < difference, pair.difference - difference))
    names = ("used", "share", "share_whole", "below", "above", "bias")
    return dict(zip(names, (float(x) for x in np.mean(found, axis=0)), strict=True))
