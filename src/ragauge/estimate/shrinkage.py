"""Means of slices shrunk towards their common mean, by a beta-binomial model that is integrated numerically.

In twenty slices the lowest is low by chance, too. Each slice's mean is taken as one draw of a beta distribution with
mean mu and intraclass correlation rho, from which its topics are drawn. Where the slices differ by no more than chance
allows, rho is near 0 and every slice moves to the common mean; a slice with many topics moves little.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ragauge.estimate.intervals import LEVEL

_RHOS, _MUS = 24, 16  # points at which the posterior of rho, and of mu given rho, is evaluated
_HALVINGS = 14  # of (0, 1), in which an end of an interval is sought
_SMALLEST = 0.01  # the least rho told from 0, over one over the topics of the largest slice
_MOST = 1e6  # effective topics, where values do not vary at all
_OWN = 10  # topics with which a slice's own spread counts as much as that of all slices


def shrunk_means(
    values: Sequence[float] | np.ndarray,
    n: Sequence[float] | np.ndarray,
    effective: Sequence[float] | np.ndarray,
    limits: tuple[float, float] = (0.0, 1.0),
    level: float = LEVEL,
) -> np.ndarray:
    """Means shrunk towards their common mean, and both interval ends, float64 [3, slices].

    `values` [slices] are means within `limits` over `n` topics each. `effective` is the number of yes-or-no values that
    determine each mean as well (`effective_topics`). NaN where one is not known, and for fewer than two slices. The
    posterior is that of x ~ Binomial(effective, theta), where theta ~ Beta has mean mu and 1 / (alpha + beta + 1) =
    rho, mu and the root of rho uniform on (0, 1). x is effective * value, even where that is no whole number (a
    quasi-likelihood for scores). Uniform roots are a uniform standard deviation between slices as in Gelman 2006, under
    which that deviation is not estimated as 0 where it may be more. Intervals are central ones of the posterior, but
    reach the end of the scale where all topics of a slice are there. They hold `level` of the slices on average, and
    not of each slice.
    """
    from scipy.special import betainc

    low, high = limits
    y, n, effective = (np.asarray(one, dtype=float) for one in (values, n, effective))
    found = np.full((3, len(y)), np.nan)
    known = ~(np.isnan(y) | np.isnan(effective))
    if known.sum() < 2:
        return found
    share = np.clip((y[known] - low) / (high - low), 0, 1)
    weight, mean, size = _posteriors(share, _moderated(n[known], effective[known]))
    ends = np.tile([[0.0], [1.0]], (1, 2 * mean.shape[1]))  # bisected: both ends of every slice
    wanted = np.repeat([(1 - level) / 2, (1 + level) / 2], mean.shape[1])
    a, b = (np.tile(one, 2) for one in (mean * size, (1 - mean) * size))
    for _ in range(_HALVINGS):
        middle = ends.mean(axis=0)
        is_below = weight @ betainc(a, b, middle) < wanted
        ends = np.where([is_below, ~is_below], middle, ends)
    below, above = ends.mean(axis=0).reshape(2, -1)
    within = np.array([weight @ mean, np.where(share <= 0, 0, below), np.where(share >= 1, 1, above)])
    found[:, known] = low + (high - low) * within
    return found


def _moderated(n: np.ndarray, effective: np.ndarray) -> np.ndarray:
    """Effective topics of each slice, with its variance per topic averaged with that of all slices.

    Few topics estimate the variance badly: three equal scores would pass for very many topics.
    """
    ratio = n / np.minimum(effective, _MOST)
    whole = (n @ ratio) / n.sum()
    return np.asarray(n * (n + _OWN) / (n * ratio + _OWN * whole))


def _posteriors(y: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The posterior of every slice's theta given share y of n draws, as a mixture of beta distributions.

    Returns the weights [rhos], and means and alpha + beta [rhos, slices]: given rho the mixture over mu is taken as
    the beta distribution of its mean and variance. rho is at the middles of cells that widen geometrically from 0. mu
    is at quantiles of a beta distribution that is wider than its posterior, and that distribution's density is divided
    out.
    """
    from scipy.special import betaincinv, betaln

    edges = np.concatenate([[0], np.geomspace(_SMALLEST / n.max(), 1, _RHOS)])
    rho = np.sqrt(np.maximum(edges[:-1], edges[1] / 4) * edges[1:])[:, None]
    tells = n / (1 + np.maximum(n - 1, 0) * rho)  # draws that tell as much of mu as each slice does
    half = tells.sum(axis=1, keepdims=True) / 2
    near = (tells @ y)[:, None] / (2 * half)
    a, b = 1 + near * half, 1 + (1 - near) * half
    mu = np.clip(betaincinv(a, b, (np.arange(_MUS) + 0.5) / _MUS), 1e-12, 1 - 1e-12)
    proposed = (a - 1) * np.log(mu) + (b - 1) * np.log1p(-mu) - betaln(a, b)
    alpha, beta = (one[..., None] for one in (mu * (1 / rho - 1), (1 - mu) * (1 / rho - 1)))
    drawn = betaln(alpha + n * y, beta + n * (1 - y)) - betaln(alpha, beta)
    log = drawn.sum(axis=2) + np.log(np.diff(np.sqrt(edges)))[:, None] - proposed
    most = log.max(axis=1, keepdims=True)
    weight = np.exp(log - most)
    of_rho = weight.sum(axis=1) * np.exp(most[:, 0] - most.max())
    weight /= weight.sum(axis=1, keepdims=True)
    size = alpha + beta + n
    means = (alpha + n * y) / size
    mean = np.einsum("rm,rmk->rk", weight, means)
    variance = np.einsum("rm,rmk->rk", weight, means * (1 - means) / (size + 1) + (means - mean[:, None]) ** 2)
    return of_rho / of_rho.sum(), mean, mean * (1 - mean) / variance - 1
