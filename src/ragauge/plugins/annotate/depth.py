"""Evidence that the depth of a pool missed, estimated from new evidence by rank.

New evidence per rank falls about as a power of the rank, by which Zobel (SIGIR 1998) extrapolated TREC's pools. So its
number at rank d is taken for Poisson with mean exp(a + b log d), b at most 0. The fit by maximum likelihood is summed
over as many ranks again. Evidence that no pooled retriever ranks there is in no such number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragauge.estimate.intervals import LEVEL

_DRAWS = 500
_STEEPEST = -20.0  # b where nothing is new after the first rank


@dataclass(frozen=True)
class Missed:
    """Evidence parts that ranks depth + 1 to 2 depth would add over all topics, with an interval over topics.

    by_rank: new parts at rank 1, 2, ..., depth. share: the missed parts over all parts of ranks 1 to 2 depth.
    """

    by_rank: tuple[int, ...]
    value: float
    lo: float
    hi: float

    @property
    def share(self) -> float:
        """`value` over all parts up to twice the depth; NaN where no part was found at all."""
        found = sum(self.by_rank)
        return self.value / (found + self.value) if found else float("nan")


def missed(ranks: Sequence[Sequence[int]], depth: int, seed: int = 0, level: float = LEVEL) -> Missed | None:
    """The estimate from the rank, 1 to depth, at which each part of each topic was first found; None at depth 1.

    The interval is of the percentile bootstrap over topics, and of the Poisson number itself. Where the lower half of
    the ranks brought nothing, its upper limit is the exact one of that zero, for twice as many ranks.
    """
    from scipy.stats import chi2

    if depth < 2 or not ranks:
        return None
    counts = np.array([np.bincount(np.asarray(of_topic, dtype=int), minlength=depth + 1)[1:] for of_topic in ranks])
    total = counts.sum(axis=0)
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=_DRAWS)
    drawn = rng.poisson([extrapolated(one, depth) for one in weights @ counts])
    tail = (1 - level) / 2
    value, (lo, hi) = extrapolated(total, depth), np.quantile(drawn, [tail, 1 - tail])
    if not total[depth // 2 :].any():
        hi = max(hi, depth / (depth - depth // 2) * chi2.isf(tail, 2) / 2)
    return Missed(tuple(map(int, total)), value, min(float(lo), value), max(float(hi), value))


def extrapolated(new: np.ndarray, depth: int) -> float:
    """The expected number at ranks depth + 1 to 2 depth, from that at each rank 1 to depth."""
    if not new.sum():
        return 0.0
    log_rank = np.log(np.arange(1, depth + 1))
    slope = _slope(new, log_rank)
    shape = np.exp(slope * log_rank)
    beyond = np.exp(slope * np.log(np.arange(depth + 1, 2 * depth + 1))).sum()
    return float(new.sum() / shape.sum() * beyond)


def _slope(new: np.ndarray, log_rank: np.ndarray) -> float:
    """The b in [_STEEPEST, 0] at which the mean log rank under the fit is the observed one (bisection)."""
    wanted = (new * log_rank).sum() / new.sum()

    def mean_at(b: float) -> float:
        weight = np.exp(b * log_rank)
        return float((weight * log_rank).sum() / weight.sum())

    lo, hi = _STEEPEST, 0.0
    if mean_at(hi) <= wanted:
        return hi
    for _ in range(60):
        middle = (lo + hi) / 2
        lo, hi = (middle, hi) if mean_at(middle) < wanted else (lo, middle)
    return (lo + hi) / 2
