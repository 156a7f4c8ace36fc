"""Means of IR scores over all topics as people's evidence would give them: PPI++ over a ratio.

A topic without evidence has no IR score. So the mean is a ratio, the sum of scores over the number of topics with
evidence. It is the R at which the mean of has * (score - R) is 0, has being 1 with evidence and 0 without.
That mean is estimated by prediction-powered inference (`ragauge.estimate._powered`), the made scores being the
predictions; its standard error over the share with evidence is that of R (delta method).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragauge.contract.errors import DataError
from ragauge.estimate._powered import powered_means
from ragauge.estimate.intervals import LEVEL, Estimate

_STEPS = 50


@dataclass(frozen=True)
class Corrected:
    """The corrected mean, the mean of people's scores alone, and the weight of the made ones (lambda)."""

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
) -> Corrected:
    """The mean over all topics as by people's evidence, with a t interval at `level`.

    people, made: float [topics], NaN without evidence by people (where labelled) or by the evaluator; also differences
    of two systems' scores. labelled: bool [topics], a random sample of each `stratum`. DataError where fewer than two
    topics are labelled, or none of these has evidence by people.
    """
    stratum = np.zeros(len(made)) if stratum is None else stratum
    if labelled.sum() < 2:
        raise DataError(f"{int(labelled.sum())} topics have evidence by people; a corrected mean takes at least 2")
    has, had = ~np.isnan(people) & labelled, ~np.isnan(made)
    if not has.any():
        raise DataError("people found no evidence for any of the labelled topics, so no IR score can be corrected")

    def powered(value: float) -> tuple[np.ndarray, np.ndarray]:
        return (
            np.where(has, np.nan_to_num(people) - value, 0.0)[:, None],
            np.where(had, np.nan_to_num(made) - value, 0.0)[:, None],
        )

    shares = powered_means(has[:, None].astype(float), had[:, None].astype(float), labelled, stratum)
    share = float(shares.estimate[0]) if shares.estimate[0] > 0 else float(shares.classical[0])
    value = float(people[has].mean())
    for _ in range(_STEPS):
        found = powered_means(*powered(value), labelled, stratum, clusters=clusters)
        step = float(found.estimate[0]) / share
        value += step
        if abs(step) < 1e-12:
            break
    from scipy.stats import t

    reach = float(t.isf((1 - level) / 2, found.df) * np.sqrt(found.variance[0]) / share)
    of = Estimate(value, value - reach, value + reach, int(labelled.sum()), level)
    return Corrected(of, float(people[has].mean()), float(found.lam[0]))
