"""Means over all topics of answer measures known for a sample of answered topics (`llm.sample`).

A regression on the IR score, fitted apart from the topics that it predicts, says what each topic would have. The mean
of its predictions is corrected by its errors on the answered topics (`ragauge.estimate.powered`). If the IR score says
nothing of the measure, lambda is about 0, and the estimate that of the answered topics alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import NOT_SAMPLED
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.outcomes import CLUSTER
from ragauge.estimate.intervals import LEVEL, Estimate, wilson_interval
from ragauge.estimate.outcomes import of_these_topics, topic_codes, units_of
from ragauge.estimate.powered import Powered, difference_test, powered_means

_FOLDS = 5


def answered(frame: pd.DataFrame, name: str) -> np.ndarray | None:
    """Whether each topic was answered, bool [rows]; None if all were, or the measure needs no answer."""
    if "answer_status" not in frame or name not in frame:
        return None
    left_out = frame["answer_status"].eq(NOT_SAMPLED).to_numpy(dtype=bool)
    apart = left_out & frame[name].isna().to_numpy()
    return ~left_out if left_out.any() and apart.sum() == left_out.sum() else None


def sampled_mean(frame: pd.DataFrame, info: AnswerMeasureInfo, level: float = LEVEL) -> Estimate | None:
    """The mean of a measure over all topics that can have a value; None if all were `answered`.

    `frame` has a row per topic: qid, ir_score, answer_status and the measure; stratum where topics were drawn by
    strata. The interval is about the population or these topics, as `sample_target` says: Wilson's for
    values in [0, 1] and signed ones, else Student's. NaN where fewer than two topics have a value.
    """
    seen = answered(frame, info.name)
    if seen is None:
        return None
    from scipy.stats import t  # here, since it takes half a second

    values = frame[info.name].to_numpy(dtype=float)
    scale, start = (2.0, -1.0) if info.unit == "signed" else (1.0, 0.0)
    values, n = (values - start) / scale, int((seen & ~np.isnan(values)).sum())
    if n < 2:
        return Estimate(float(np.nanmean(values)) * scale + start if n else np.nan, np.nan, np.nan, n, level)
    found = _powered(frame, values, predicted(frame, values), seen)
    mean = found.estimate
    critical = t.isf((1 - level) / 2, found.df)
    if info.bounded or info.unit == "signed":
        limits = limits_within_0_and_1(float(mean[0]), float(found.variance[0]), found.n, critical, level)
    else:
        reach = float(critical * np.sqrt(found.variance[0]))
        limits = float(mean[0]) - reach, float(mean[0]) + reach
    value, low, high = (limit * scale + start for limit in (float(mean[0]), *limits))
    return Estimate(value, low, high, n, level)


def limits_within_0_and_1(mean: float, variance: float, n: float, critical: float, level: float) -> tuple[float, float]:
    """Wilson's limits at the effective number of yes-or-no topics.

    A quarter of a topic at 0 and one at 1 are added, as in `effective_topics`. Few values near an end do not show how
    far the unseen ones spread.
    """
    from scipy.stats import norm

    p = (np.clip(mean, 0, 1) * n + 0.25) / (n + 0.5)
    wider = variance + 0.25 * (p**2 + (1 - p) ** 2) / n**2
    fewer = (norm.isf((1 - level) / 2) / critical) ** 2
    lo, hi = wilson_interval(float(np.clip(mean, 0, 1)), p * (1 - p) / wider * fewer, level)
    return float(min(lo, mean)), float(max(hi, mean))


def sampled_difference(
    a: pd.DataFrame, b: pd.DataFrame, name: str, reach: float, level: float = LEVEL
) -> tuple[Estimate, float] | None:
    """The mean difference of a measure between two systems over all topics, and p of it being 0.

    `a` and `b` are frames as `sampled_mean` takes them, `reach` is how far apart two values can be (`difference_test`).
    None where neither left topics out, or fewer than two topics have both values.
    """
    if answered(a, name) is None and answered(b, name) is None:
        return None
    common = sorted(set(a["qid"]) & set(b["qid"]))
    a, b = (one.set_index("qid", drop=False).loc[common] for one in (a, b))
    everywhere = np.ones(len(common), dtype=bool)
    masks = [everywhere if (mask := answered(one, name)) is None else mask for one in (a, b)]
    x, y = (one[name].to_numpy(dtype=float) for one in (a, b))
    seen, apart = masks[0] & masks[1], (x - y) / reach
    n = int((seen & ~np.isnan(apart)).sum())
    if n < 2:
        return None
    fewest = a if masks[0].sum() <= masks[1].sum() else b
    found = _powered(fewest, apart, (predicted(a, x) - predicted(b, y)) / reach, seen)
    lo, hi, p = difference_test(found, level)
    value, low, high = (float(limit[0]) * reach for limit in (found.estimate, lo, hi))
    return Estimate(value, low, high, n, level), float(p[0])


def predicted(frame: pd.DataFrame, values: np.ndarray) -> np.ndarray:
    """Values predicted by a parabola of the IR score, fitted on other folds of topics or clusters, float [rows].

    A row without a value is predicted by all folds' mean, one without an IR score by the values' mean.
    """
    score = frame["ir_score"].to_numpy(dtype=float)
    x = np.vander(np.nan_to_num(score), 3)
    units, n_units = topic_codes(units_of(frame))
    with_value = ~np.isnan(values)
    known = np.unique(units[with_value])
    fold = np.full(n_units, -1)
    fold[known] = np.random.default_rng(0).permutation(len(known)) % _FOLDS
    found = np.zeros(len(frame))
    for number in range(_FOLDS):
        others = with_value & (fold[units] != number)
        here = np.full(len(frame), values[others].mean() if others.any() else np.nanmean(values))
        fitted, scored = others & ~np.isnan(score), ~np.isnan(score)
        if fitted.sum() > 3:
            here[scored] = x[scored] @ np.linalg.lstsq(x[fitted], values[fitted], rcond=None)[0]
        found = np.where(fold[units] == number, here, found + np.where(fold[units] < 0, here / _FOLDS, 0.0))
    return found


def _powered(frame: pd.DataFrame, values: np.ndarray, expected: np.ndarray, seen: np.ndarray) -> Powered:
    """The mean over topics with a value, one column, and its linearised variance as a ratio of two means."""
    stratum = frame["stratum"].fillna(0).to_numpy(dtype=float) if "stratum" in frame else np.zeros(len(frame))
    clusters = topic_codes(frame[CLUSTER])[0] if CLUSTER in frame else None
    fixed = of_these_topics(frame) and not seen.all()
    has = ~np.isnan(values)

    def means(column: np.ndarray, by: np.ndarray) -> Powered:
        return powered_means(column[:, None], by[:, None], seen, stratum, 0, clusters, fixed)

    share = means(has.astype(float), np.zeros(len(frame))).estimate
    middle = values[seen & has].mean()
    found = means(np.where(has, values - middle, 0.0), share * (expected - middle))
    n = found.n * float(share[0])
    return replace(found, estimate=middle + found.estimate / share, variance=found.variance / share**2, n=n)
