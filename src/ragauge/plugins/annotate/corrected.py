"""Estimates mean IR scores over all topics under people's evidence: PPI++ over a ratio.

A topic without evidence has no IR score. So the mean is a ratio, the sum of scores over the number of topics with
evidence. It is the R at which the mean of has * (score - R) is 0, has being 1 with evidence and 0 without.
That mean is estimated by prediction-powered inference (`ragauge.estimate.powered`), the made scores being the
predictions; its standard error over the share with evidence is that of R (delta method).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragauge.contract.errors import DataError
from ragauge.estimate.intervals import LEVEL, Estimate
from ragauge.estimate.powered import Powered, powered_means
from ragauge.estimate.sampled_means import limits_within_0_and_1

_STEPS = 50
_SAME = 1e-9  # scores that differ by less are equal


@dataclass(frozen=True)
class Corrected:
    """The corrected mean, the mean of people's scores alone, and the weight of the made scores (lambda)."""

    mean: Estimate
    people_only: float
    lam: float


def corrected_mean(
    people: np.ndarray,
    made: np.ndarray,
    labelled: np.ndarray,
    stratum: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    level: float = LEVEL,
    least: float = 0.0,
) -> Corrected:
    """The mean over all topics under people's evidence, with a t interval at `level` inside [least, 1].

    people, made: float [topics], NaN without evidence by people (where labelled) or by the evaluator; also differences
    of two systems' scores, with `least` -1. labelled: bool [topics], a random sample of each `stratum`. Where people's
    scores are all alike the interval is Wilson's with topics at both ends added (`limits_within_0_and_1`), since the
    scores show no variance. DataError where fewer than two topics are labelled, or none of these has evidence by
    people.
    """
    stratum = np.zeros(len(made)) if stratum is None else stratum
    if labelled.sum() < 2:
        raise DataError(f"{int(labelled.sum())} topics have evidence by people; a corrected mean takes at least 2")
    has, had = ~np.isnan(people) & labelled, ~np.isnan(made)
    if not has.any():
        raise DataError("people found no evidence for any of the labelled topics, so no IR score can be corrected")

    def less(value: float) -> Powered:
        of_people = np.where(has, np.nan_to_num(people) - value, 0.0)[:, None]
        of_made = np.where(had, np.nan_to_num(made) - value, 0.0)[:, None]
        return powered_means(of_people, of_made, labelled, stratum, clusters=clusters)

    shares = powered_means(has[:, None].astype(float), had[:, None].astype(float), labelled, stratum)
    share = float(shares.estimate[0]) if shares.estimate[0] > 0 else float(shares.classical[0])
    value = float(people[has].mean())
    found = less(value)
    for _ in range(_STEPS):
        step = float(found.estimate[0]) / share
        value += step
        if abs(step) < 1e-12:
            break
        found = less(value)
    from scipy.stats import t

    critical = float(t.isf((1 - level) / 2, found.df))
    reach = critical * float(np.sqrt(found.variance[0])) / share
    lo, hi = value - reach, value + reach
    if np.ptp(people[has]) < _SAME:
        ends = limits_within_0_and_1((value - least) / (1 - least), 0.0, found.n * share, critical, level)
        lo, hi = (end * (1 - least) + least for end in ends)
    of = Estimate(value, min(max(lo, least), value), max(min(hi, 1.0), value), int(labelled.sum()), level)
    return Corrected(of, float(people[has].mean()), float(found.lam[0]))
