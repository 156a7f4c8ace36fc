"""Tests that a mean difference is above a value, valid if few topics differ, or few differ much.

A t test takes the mean for normal and the spread for known. Where a few topics lose much, a sample that holds
too few of them has a mean that is too high and a spread that is too small at once. Sources, assumptions:
docs/method.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

_TOO_SMALL = 30  # over the number of topics: by how much their skewness is too small, by simulation


@dataclass(frozen=True)
class LowerBound:
    """p: of a mean as low as the given value; limit: the lower limit at alpha; spread: of a topic."""

    p: float
    limit: float
    spread: float


def skewed_mean(d: np.ndarray, value: float, alpha: float) -> LowerBound:
    """Tests that the mean of `d` [topics] is above `value`, by a t test corrected for a long lower tail.

    Where the lowest difference is further from the mean than the highest, one topic is added: as far below the mean as
    the one is further than the other. The statistic is Hall's (1992, equation 6) with the observed skewness times 1 +
    30 / n, since few topics show too little of a long tail. A skewness above 0 counts as 0: then the t test errs to the
    safe side. docs/method.md says how both were chosen.
    """
    from scipy.special import stdtr, stdtrit

    mean, spread = float(d.mean()), float(d.std(ddof=1))
    if spread == 0:
        return LowerBound(float(mean <= value), mean, 0.0)
    tail = 2 * mean - float(d.min() + d.max())
    seen = np.append(d, mean - tail) if tail > 1e-9 * spread else d
    n, middle, deviation = len(seen), float(seen.mean()), float(seen.std(ddof=1))
    skewness = min(float(((seen - middle) ** 3).mean()) / float(seen.std()) ** 3, 0.0) * (1 + _TOO_SMALL / n)
    x = (middle - value) / deviation
    x += skewness * x**2 / 3 + skewness**2 * x**3 / 27 + skewness / (6 * n)
    critical = -float(stdtrit(n - 1, alpha)) / math.sqrt(n)
    if skewness < 0:  # the same cubic, solved for x
        critical = _less_cbrt(skewness * (critical - skewness / (6 * n))) * 3 / skewness
    return LowerBound(float(stdtr(n - 1, -x * math.sqrt(n))), middle - critical * deviation, spread)


def _less_cbrt(u: float) -> float:
    """The cubic root of 1 + u, less 1, accurate for u near 0."""
    return math.expm1(math.log1p(u) / 3) if abs(u) < 0.5 else float(np.cbrt(1 + u)) - 1


def bounded_mean_of_few(d: np.ndarray, value: float, reach: float, alpha: float) -> LowerBound:
    """Tests that the mean of `d` [topics], none below -reach, is above `value`, whatever their distribution.

    Gaffke's bound (2005): the mean under random weights (Dirichlet) of the differences and of one more topic
    that loses `reach`. Where differences are 0 and -reach it is Clopper's and Pearson's.
    """
    from scipy.optimize import brentq

    values, counts = np.unique(np.append(d, -reach), return_counts=True)
    spread = float(np.append(d, -reach).std())

    def p_of(shift: float) -> float:
        return weighted_below(values - shift, counts)

    mean = float(d.mean())
    if reach == 0:
        return LowerBound(float(mean <= value), mean, spread)
    low = float(brentq(lambda shift: p_of(shift) - alpha, -reach, mean, xtol=1e-9)) if mean > -reach else mean
    return LowerBound(p_of(value), low, spread)


def weighted_below(values: np.ndarray, counts: np.ndarray) -> float:
    """P(sum of `values`, each `counts` times, with weights from a flat Dirichlet distribution is 0 or less).

    That is the sign of a sum of exponential variables, by Imhof's integral (1961), to seven digits.
    """
    if values.max() <= 0:
        return 1.0
    if values.min() >= 0:
        return 0.0
    a = values / math.sqrt(float((counts * values**2).sum()))
    at, width = _points()
    angle = np.arctan(np.outer(at, a)) @ counts
    size = np.exp(-0.5 * (np.log1p(np.outer(at, a) ** 2) @ counts))
    return min(max(0.5 - float((np.sin(angle) * size / at) @ width) / math.pi, 0.0), 1.0)


@cache
def _points() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for an integral from 0 to infinity: Gauss's rule of ten points in each of 200 equal
    parts of t / (1 + t).
    """
    nodes, weights = np.polynomial.legendre.leggauss(10)
    x = ((np.arange(200)[:, None] + (nodes + 1) / 2) / 200).ravel()
    return x / (1 - x), np.tile(weights / 400, 200) / (1 - x) ** 2
