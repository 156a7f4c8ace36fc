"""A system's share of yes answers from a judge's probabilities on all topics and people's labels of a few.

Prediction-powered inference (PPI++, `ragauge.estimate._powered`) for one yes-or-no question, as ARES does it
(Saad-Falcon et al. 2023, arXiv:2311.09476, section 3.3), but with labels of this system's own answers: labels
of another system's answers would assume that the judge errs alike on both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragauge.contract.errors import DataError
from ragauge.estimate._powered import powered_means
from ragauge.estimate.human import strata_of_labels
from ragauge.estimate.intervals import LEVEL, Estimate
from ragauge.estimate.ppi import share_limits

FEW_LABELS = 150  # below which ARES found its intervals of little use
_UNSEEN = 0.5  # labels that differ from the prediction, added to the variance: few labels may show none


@dataclass(frozen=True)
class PoweredShare:
    """The share of yes of all topics, as people would say, and what the labels alone say of it.

    effective_n: how many labels alone give that standard error. lam: the weight of the predictions, 0 where
    they are of no use. n_labels of n_topics have a label.
    """

    powered: Estimate
    labels_only: Estimate
    effective_n: float
    lam: float
    n_labels: int
    n_topics: int


def powered_share(labels: np.ndarray, predicted: np.ndarray, level: float = LEVEL) -> PoweredShare:
    """The share of topics that people would say yes to, with intervals at `level`.

    labels: float [topics], 1, 0, or NaN where nobody said; predicted: float [topics] in [0, 1]. The labelled
    topics pass for a random draw, or stand for the others by strata of the judge's yes and no
    (`strata_of_labels`). Where all labels are alike, or the corrected share is not inside (0, 1), it is that
    of the labels alone, whose interval is then exact (Clopper-Pearson). Raises DataError for fewer than two
    labels, for values that are neither, and where the labelled topics are no sample that all topics can be
    estimated from.
    """
    labels, predicted = np.asarray(labels, dtype=float), np.asarray(predicted, dtype=float)
    if labels.shape != predicted.shape or labels.ndim != 1:
        raise DataError(f"labels of shape {labels.shape} and predictions of {predicted.shape}: one of each a topic")
    known = ~np.isnan(labels)
    if not np.isin(labels[known], (0.0, 1.0)).all():
        raise DataError("labels: allowed are 1, 0, and nothing")
    if not ((predicted >= 0) & (predicted <= 1)).all():
        raise DataError("predictions: allowed are numbers from 0 to 1")
    if known.sum() < 2:
        raise DataError(f"{int(known.sum())} labels; a share takes at least 2")
    stratum = strata_of_labels(known, (predicted > 0.5).astype(int), predicted)
    values = np.nan_to_num(labels)[:, None]
    found = powered_means(values, predicted[:, None], known, stratum)
    seen = 0 < found.classical[0] < 1
    corrected = bool(seen and 0 < found.estimate[0] < 1 and found.variance[0] > 0)
    estimate = found.estimate if corrected else found.classical
    widened = found.variance + _UNSEEN / found.n**2
    variance = widened if corrected else found.classical_variance
    limits = (
        share_limits(estimate, variance, found.n, found.df, level),
        share_limits(found.classical, found.classical_variance, found.n, found.df, level),
    )
    n, total = int(known.sum()), len(labels)
    powered, alone = (
        Estimate(float(value[0]), float(lo[0]), float(hi[0]), n)
        for value, (lo, hi) in zip((estimate, found.classical), limits, strict=True)
    )
    effective = float(found.spread[0] / variance[0]) if variance[0] > 0 else found.n
    return PoweredShare(powered, alone, effective, float(found.lam[0]) if corrected else 0.0, n, total)
