"""Estimates the evidence missed by a pool's depth, from new evidence at the deepest ranks.

Zobel (SIGIR 1998) extrapolated TREC's pools by a power of the rank. Here the tail alone is taken, from half the depth
on, since the first ranks hold the easy evidence. New evidence at rank d is in proportion to d^-b there: b = 1 for the
estimate, b = 2 for its lower limit, b = 0 for its upper one. Evidence that no pooled retriever ranks within twice the
depth is in no such number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragauge.estimate.intervals import LEVEL

_DRAWS = 500


@dataclass(frozen=True)
class Missed:
    """Evidence parts that ranks depth + 1 to 2 depth would add over all topics, with an interval.

    by_rank: new parts at rank 1, 2, ..., depth.
    """

    by_rank: tuple[int, ...]
    value: float
    lo: float
    hi: float

    @property
    def share(self) -> float:
        """`value` over all parts up to twice the depth; NaN if no part was found."""
        found = sum(self.by_rank)
        return self.value / (found + self.value) if found else float("nan")


def missed(ranks: Sequence[Sequence[int]], depth: int, seed: int = 0, level: float = LEVEL) -> Missed | None:
    """The estimate from the rank, 1 to depth, at which each evidence part was first found; None at depth 1.

    Limits: quantiles of a bootstrap over topics with Poisson numbers, for the slopes that the module names. Where the
    lower half of the ranks brought nothing, the upper one is Poisson's exact limit of that zero.
    """
    from scipy.stats import chi2

    if depth < 2 or not ranks:
        return None
    counts = np.array([np.bincount(np.asarray(of_topic, dtype=int), minlength=depth + 1)[1:] for of_topic in ranks])
    deep = counts[:, depth // 2 :].sum(axis=1)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(deep), np.full(len(deep), 1 / len(deep)), size=_DRAWS) @ deep
    tail = (1 - level) / 2
    value = float(deep.sum() * ratio(depth, 1))
    lo = float(np.quantile(rng.poisson(drawn * ratio(depth, 2)), tail))
    hi = float(np.quantile(rng.poisson(drawn * ratio(depth, 0)), 1 - tail))
    if not deep.any():
        hi = float(ratio(depth, 0) * chi2.isf(tail, 2) / 2)
    return Missed(tuple(map(int, counts.sum(axis=0))), value, min(lo, value), max(hi, value))


def ratio(depth: int, slope: float) -> float:
    """New evidence at ranks depth + 1 to 2 depth over that from half the depth to it, if it falls as d^-slope."""
    tail, beyond = np.arange(depth // 2 + 1, depth + 1), np.arange(depth + 1, 2 * depth + 1)
    return float((beyond ** -float(slope)).sum() / (tail ** -float(slope)).sum())
