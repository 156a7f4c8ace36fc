"""Group-sequential looks at a gate: levels per look that keep the overall error at alpha.

A group-sequential plan: the largest number of topics is fixed beforehand. A look at a share t of it may have spent
alpha(t) = 2 (1 - Phi(z_(alpha/2) / sqrt(t))) of the error (Lan & DeMets 1983, their function of O'Brien's and Fleming's
type). The looks may come when they come. Sources, figures: docs/method.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

SIDE = 0.025  # of a 95 % interval
LEAST_LEVEL = 1e-12  # at which limits are shown where nothing may be spent yet
_REACH = 8.0  # standard deviations that are integrated over
_PART = 2.0  # of them, of the smaller step: the width of a part in which ten points are taken
_LEAST = 1e-13  # less than this is not spent: an integral does not tell it from nothing


def spent(alpha: float, share: float) -> float:
    """The one-sided error to spend by a look at this share (above 0) of the largest number of topics."""
    from scipy.special import ndtr, ndtri

    return float(2 * ndtr(ndtri(alpha / 2) / math.sqrt(min(share, 1.0))))


def level_of(alpha: float, shares: Sequence[float]) -> float:
    """The one-sided level of the last of several looks, at these shares of the largest number of topics.

    `shares` rise, above 0 and at most 1. A test that rejects at each look at its level rejects a true hypothesis in
    alpha(the last share) of all cases. It is computed by recursive integration of the sums of normal increments
    (Armitage, McPherson & Rowe 1969). 0 where less than 1e-13 may be spent.
    """
    return _levels(alpha, tuple(float(share) for share in shares))[-1]


def repeated_p(p: float, shares: Sequence[float]) -> float:
    """The smallest alpha at which the last of the looks rejects with this p; 1 if that exceeds a half.

    It is below alpha where, and only where, p is below the look's level (Jennison & Turnbull 2000, section 9.5).
    """
    from scipy.optimize import brentq

    if p >= level_of(0.5, shares):
        return 1.0
    low, high = math.log(1e-6), math.log(0.5)

    def beyond(log_alpha: float) -> float:
        return math.log(max(level_of(math.exp(log_alpha), shares), 1e-300)) - math.log(max(p, 1e-290))

    return math.exp(low if beyond(low) >= 0 else brentq(beyond, low, high, xtol=1e-7))


def p_beyond(value: float, limit: float, bound: float) -> float:
    """One-sided p of a metric being beyond `bound`, by the limit of its 95 % interval on the bound's side.

    The distance from value to limit is taken for 1.96 standard errors; 1 where the bound lies to the other side.
    """
    from scipy.special import ndtr, ndtri

    far, half = bound - value, limit - value
    if far * half < 0 or far == 0:
        return 1.0
    return float(ndtr(ndtri(SIDE) * far / half)) if half else 0.0


def widened(value: float, limit: float, level: float) -> float:
    """The limit of a 95 % interval, moved from `value` to another one-sided level."""
    from scipy.special import ndtri

    return value + (limit - value) * float(ndtri(max(level, LEAST_LEVEL)) / ndtri(SIDE))


@cache
def _levels(alpha: float, shares: tuple[float, ...]) -> tuple[float, ...]:
    """The levels of all looks."""
    from scipy.optimize import brentq
    from scipy.special import ndtr

    levels: list[float] = []
    # Values that the sum of the information (of variance `share`) has at a look, each with its probability where no
    # earlier look has rejected.
    sums, masses = np.zeros(1), np.ones(1)
    before = gone = 0.0
    for number, share in enumerate(shares):
        step, whole, may = math.sqrt(share - before), math.sqrt(share), spent(alpha, share) - gone
        z = math.inf
        if may > _LEAST:
            z = float(brentq(_excess, -_REACH, _REACH + 1, (sums, masses, step, whole, may)))
            gone += may
        levels.append(float(ndtr(-z)))
        if number + 1 < len(shares):
            low, high = -_REACH * whole, min(z, _REACH) * whole
            parts = math.ceil((high - low) / min(step, math.sqrt(shares[number + 1] - share)) / _PART)
            points, weights = _points(parts)
            at = low + points * (high - low)
            density = np.exp(-(((at[:, None] - sums) / step) ** 2) / 2) / (step * math.sqrt(2 * math.pi))
            sums, masses, before = at, (density @ masses) * weights * (high - low), share
    return tuple(levels)


def _excess(z: float, sums: np.ndarray, masses: np.ndarray, step: float, whole: float, may: float) -> float:
    """The excess over `may` of a look's probability to reject above z, after the sums so far and one more step."""
    from scipy.special import ndtr

    return float(ndtr((sums - z * whole) / step) @ masses) - may


@cache
def _points(parts: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for an integral from 0 to 1: Gauss's rule of ten points in each of equal parts."""
    nodes, weights = np.polynomial.legendre.leggauss(10)
    return ((np.arange(parts)[:, None] + (nodes + 1) / 2) / parts).ravel(), np.tile(weights / 2 / parts, parts)
