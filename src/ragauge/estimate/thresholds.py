"""The thresholds h and k of the IR score: exact, with all optima, and their gain.

Below h a lack of information is likely (class 1), above k a right answer (class 5), between them a risk of
hallucination. The log-likelihood of a threshold t is L(t) = sum log(a_i + 1e-10). a_i is 1 where [score on the right
side of t] agrees with [class is the target], else 0. So L(t) is -23.03 times the disagreements. The estimate is
therefore the t in [0, 1] with the fewest disagreements. These change at the observed scores only: one sort and a
cumulative count find every optimum (docs/method.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.estimate._segments import Segments, Side
from ragauge.estimate.intervals import (
    LEVEL,
    Estimate,
    bootstrap_mean,
    paired_share_interval,
    percentile_interval,
    topic_weights,
    units_among,
)
from ragauge.estimate.outcomes import (
    GROUP_COLUMNS,
    LACK,
    RIGHT,
    check_outcomes,
    clusters_of,
    labels_of,
    numbered,
    weights_of,
)

Degenerate = Literal["", "always", "never"]
DISAGREEMENT = math.log(1e-10)  # -23.03: what one disagreement adds to the log-likelihood
GAIN_FOLDS = 5
_NAN = float("nan")
_NO_GAIN = Estimate(_NAN, _NAN, _NAN, 0)


@dataclass(frozen=True)
class Threshold:
    """A fitted threshold: `side` "above" predicts the target iff score > value, "below" iff score < value.

    `intervals` are all maximal sets of thresholds with the fewest disagreements, in rising order, each with its open
    and closed ends. `interval` is the widest of them, of equally wide ones the lowest, and `value` its middle. `lo`,
    `hi`: how stable the value is, the central part of its bootstrap over topics, NaN where none was asked for; it is no
    confidence interval. `not_rejected`: the thresholds that a paired test over topics does not reject against `value`
    (see `Segments.not_rejected`), in rising order; none for fewer than two topics. `accuracy`: share of the n pairs on
    which threshold and class agree; `base_rate`: what the better constant answer of each system reaches; both on the
    data of the fit. `gain`: accuracy on topics that the fit has not seen, less `base_rate` (see `out_of_fold_gain`),
    NaN where not asked for. `degenerate`: "always" or "never" where the threshold says the same of every observed
    score. `log_likelihood`: L(value). Without pairs all numbers are NaN and `interval` is None.
    """

    side: Side
    value: float
    lo: float
    hi: float
    interval: pd.Interval | None
    intervals: tuple[pd.Interval, ...]
    accuracy: float
    base_rate: float
    degenerate: Degenerate
    disagreements: int
    log_likelihood: float
    n: int
    not_rejected: tuple[pd.Interval, ...] = ()
    gain: Estimate = _NO_GAIN

    @property
    def set_min(self) -> float:
        """The lower end of the non-rejected thresholds; NaN without any."""
        return float(self.not_rejected[0].left) if self.not_rejected else _NAN

    @property
    def set_max(self) -> float:
        """The upper end of the non-rejected thresholds; NaN without any."""
        return float(self.not_rejected[-1].right) if self.not_rejected else _NAN

    @property
    def useful(self) -> bool:
        """Whether the interval of the out-of-fold gain lies above 0."""
        return self.gain.lo > 0


@dataclass(frozen=True)
class Thresholds:
    """h and k of one frame of outcomes, with the numbers of rows, topics and rows without a label."""

    h: Threshold
    k: Threshold
    n_topics: int
    n_missing: int
    level: float

    def metrics(self) -> dict[str, float]:
        """The metrics `threshold_h` and `threshold_k`, each with its properties as suffixes.

        Suffixes: `_lo`, `_hi` (stability), `_set_min`, `_set_max`, `_accuracy`, `_base_rate`, `_gain`, `_gain_lo`,
        `_gain_hi`, `_degenerate` (0 or 1).
        """
        return {
            name: value
            for letter, t in (("h", self.h), ("k", self.k))
            for name, value in (
                (f"threshold_{letter}", t.value),
                (f"threshold_{letter}_lo", t.lo),
                (f"threshold_{letter}_hi", t.hi),
                (f"threshold_{letter}_set_min", t.set_min),
                (f"threshold_{letter}_set_max", t.set_max),
                (f"threshold_{letter}_accuracy", t.accuracy),
                (f"threshold_{letter}_base_rate", t.base_rate),
                (f"threshold_{letter}_gain", t.gain.value),
                (f"threshold_{letter}_gain_lo", t.gain.lo),
                (f"threshold_{letter}_gain_hi", t.gain.hi),
                (f"threshold_{letter}_degenerate", float(t.degenerate != "")),
            )
        }


def fit_threshold(
    scores: np.ndarray | pd.Series,
    is_target: np.ndarray | pd.Series,
    side: Side,
    topics: np.ndarray | pd.Series | None = None,
    n_boot: int = 0,
    seed: int = 0,
    level: float = LEVEL,
    n_splits: int = 0,
    weights: np.ndarray | None = None,
    systems: np.ndarray | None = None,
    clusters: np.ndarray | pd.Series | None = None,
) -> Threshold:
    """The threshold in [0, 1] with the fewest disagreements between its `side` and `is_target`.

    `scores` float [n] in [0, 1]; `is_target` bool [n]; `side` "above" (k: target iff score > t) or "below"
    (h: target iff score < t). A threshold is a number of [0, 1] and both sides are strict. With a score of 0 in the
    data no k says "always", and with a score of 1 no h does; `accuracy` may then be under `base_rate`. With n_boot > 0
    lo and hi are percentiles over resampled `topics` [n] (default: every pair a topic); NaN for fewer than two topics.
    With n_splits > 1 there is a gain over as many folds of topics. `weights` [n], above 0, say how many pairs each pair
    stands for (see `weights_of`): disagreements and all shares are then weighted. `systems` int [n] numbers the system
    of each pair from 0 (default: one for all), whose own better constant answer `base_rate` and gain are held against.
    `clusters` [n] are what is resampled, tested and put into folds where topics are not independent. Time: one sort,
    and n operations a replicate. Raises DataError for scores outside [0, 1] and for weights that are not above 0.
    """
    x = np.asarray(scores, dtype=float)
    target = np.asarray(is_target, dtype=bool)
    if x.shape != target.shape or x.ndim != 1:
        raise DataError(f"scores and targets must be two lists of one length, not {x.shape} and {target.shape}")
    nan = float("nan")
    n = len(x)
    if n == 0:
        return Threshold(side, nan, nan, nan, None, (), nan, nan, "", 0, nan, 0)
    outside = ~((x >= 0) & (x <= 1))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise DataError(f"score {row} is {x[row]}; allowed are numbers in [0, 1]")
    ranked = Segments(x, side)
    # Passing a target turns it from agreed to disagreed where targets lie above, the reverse where below.
    sign = np.where(target[ranked.order] == (side == "above"), 1, -1).astype(np.int32)
    w = _mean_of_1(weights, n)
    if weights is not None:
        sign = sign * w[ranked.order]

    runs = ranked.optima(ranked.excess(sign[None, :]))
    _, begin, end = runs
    best = int(ranked.widest(runs)[0])
    intervals = tuple(ranked.interval(int(b), int(e)) for b, e in zip(begin, end, strict=True))
    value = float(ranked.midpoints(ranked.lo[begin], ranked.hi[end])[best])

    said = x > value if side == "above" else x < value
    wrong = said != target
    lost = float(w[wrong].sum())
    codes, n_units, _ = units_among(n, topics, clusters)
    lo, hi = nan, nan
    not_rejected: tuple[pd.Interval, ...] = ()
    if n_units > 1:
        of_row = None if n_units == n else codes[ranked.order]
        not_rejected = ranked.not_rejected(value, sign, of_row, level)
        if n_boot:
            lo, hi = percentile_interval(_replicates(ranked, sign, codes, n_units, n_boot, seed), level)
    of_rows = codes if topics is None else topics
    gain = _NO_GAIN
    if n_splits > 1:
        gain = out_of_fold_gain(x, target, side, of_rows, n_splits, seed, level, w, systems, clusters)
    return Threshold(
        side=side,
        value=value,
        lo=lo,
        hi=hi,
        interval=intervals[best],
        intervals=intervals,
        accuracy=1 - lost / n,
        base_rate=float(w[_constant(target, w, systems) == target].sum()) / n,
        degenerate="always" if said.all() else "" if said.any() else "never",
        disagreements=int(wrong.sum()),
        log_likelihood=lost * DISAGREEMENT,
        n=n,
        not_rejected=not_rejected,
        gain=gain,
    )


def out_of_fold_gain(
    scores: np.ndarray,
    is_target: np.ndarray,
    side: Side,
    topics: np.ndarray | pd.Series,
    n_splits: int = GAIN_FOLDS,
    seed: int = 0,
    level: float = LEVEL,
    weights: np.ndarray | None = None,
    systems: np.ndarray | None = None,
    clusters: np.ndarray | pd.Series | None = None,
) -> Estimate:
    """Out-of-fold accuracy of the threshold minus that of the better constant answer.

    That answer is each system's own, so that a threshold that separates systems, but not answers within one, gains
    nothing.

    The threshold is fitted on the other folds of whole topics (as many folds as topics where there are fewer
    than n_splits). The constant answer is the better one of all rows. One fitted on the other folds would be wrong too
    often, as a class that is frequent there is rare in the fold left out. The interval is that of
    `paired_share_interval` and holds the fits fixed. `weights`, `systems`, `clusters` as in `fit_threshold`. NaN for
    fewer than two topics or clusters.
    """
    codes, n_units, n_topics = units_among(len(scores), topics, clusters)
    w = _mean_of_1(weights, len(scores))
    splits = min(n_splits, n_units)
    if splits < 2:
        return Estimate(_NAN, _NAN, _NAN, n_topics, level)
    fold = (np.random.default_rng(seed).permutation(n_units) % splits)[codes]
    right = np.zeros(len(scores), dtype=bool)
    for number in range(splits):
        inside = fold == number
        apart = ~inside
        of_apart = None if weights is None else w[apart]
        t = fit_threshold(scores[apart], is_target[apart], side, weights=of_apart).value
        right[inside] = (scores[inside] > t if side == "above" else scores[inside] < t) == is_target[inside]
    constant = is_target == _constant(is_target, w, systems)
    return paired_share_interval(right.astype(float) - constant, topics, level, w, clusters)


def _constant(is_target: np.ndarray, weights: np.ndarray, systems: np.ndarray | None) -> np.ndarray:
    """Whether the target is the majority within a pair's system, bool [n]."""
    of = np.zeros(len(is_target), dtype=int) if systems is None else systems
    targets, total = np.bincount(of, weights * is_target), np.bincount(of, weights)
    often: np.ndarray = targets > total / 2
    return often[of]


def _mean_of_1(weights: np.ndarray | None, n: int) -> np.ndarray:
    """The weights over their mean, float64 [n], all 1 without any; DataError unless all are above 0."""
    if weights is None:
        return np.ones(n)
    w = np.asarray(weights, dtype=float)
    bad = ~((w > 0) & np.isfinite(w)) if len(w) == n else np.ones(1, dtype=bool)
    if bad.any():
        raise DataError(
            f"weights: {len(w)} for {n} pairs"
            if len(w) != n
            else f"weight {int(bad.argmax())} is {w[bad.argmax()]}; allowed are numbers above 0"
        )
    return w / w.mean()


def _replicates(
    ranked: Segments, sign: np.ndarray, codes: np.ndarray, n_topics: int, n_boot: int, seed: int
) -> np.ndarray:
    """The threshold in every resample of the topics, float64 [n_boot]."""
    topic = codes[ranked.order]
    values = []
    for weights in topic_weights(n_topics, n_boot, seed, width=len(sign)):
        runs = ranked.optima(ranked.excess(weights[:, topic] * sign))
        best = ranked.widest(runs)
        _, begin, end = runs
        values.append(ranked.midpoints(ranked.lo[begin[best]], ranked.hi[end[best]]))
    return np.concatenate(values)


def fit_thresholds(
    frame: pd.DataFrame,
    n_boot: int = 1000,
    seed: int = 0,
    level: float = LEVEL,
    n_splits: int = GAIN_FOLDS,
) -> Thresholds:
    """h (class 1 below it) and k (class 5 above it) of a frame of outcomes, with intervals over topics.

    `frame` has `qid`, `ir_score`, `label`; rows without a label are left out and counted. Rows count as often
    as their `weight` says, where a sample was judged (see `asked`). All rows of a topic are resampled
    together. The columns of GROUP_COLUMNS identify a system, its budget included. n_boot=0 leaves `lo` and `hi` out,
    n_splits=0 the gain. Raises DataError on a bad row.
    """
    check_outcomes(frame)
    labels = labels_of(frame)
    known = labels > 0
    scores = frame["ir_score"].to_numpy(dtype=float)[known]
    qids = frame["qid"].to_numpy()[known]
    classes = labels[known]
    weights = weights_of(frame)[known] if "weight" in frame else None
    of = numbered(frame, GROUP_COLUMNS)
    systems = None if of is None else of[known]
    how = (qids, n_boot, seed, level, n_splits, weights, systems, clusters_of(frame[known]))
    return Thresholds(
        h=fit_threshold(scores, classes == LACK, "below", *how),
        k=fit_threshold(scores, classes == RIGHT, "above", *how),
        n_topics=len(pd.unique(qids)),
        n_missing=int((~known).sum()),
        level=level,
    )


def share_by_zone(
    frame: pd.DataFrame, h: float, k: float, n_boot: int = 1000, seed: int = 0, level: float = LEVEL
) -> pd.DataFrame:
    """The class shares implied by the thresholds, beside the judged ones.

    Returns [zone, share, classes, judged_share, difference, lo, hi]. The rows are `above_k` against class 5, `between`
    against classes 2 to 4, `below_h` against class 1, and `missing` for rows without a verdict (share 0). Shares are
    over all rows, difference is share less judged_share, lo and hi its interval over topics for these h and k. A score
    on a threshold is between; should h lie above k, a score above k counts there and not as below h. Rows count as
    often as their `weight` says. Shares are NaN where h or k is.
    """
    check_outcomes(frame)
    scores = frame["ir_score"].to_numpy(dtype=float)
    labels = labels_of(frame)
    above = scores > k
    below = (scores < h) & ~above
    known = not (math.isnan(h) or math.isnan(k))
    said = np.column_stack([above, ~above & ~below, below, np.zeros(len(frame), bool)]).astype(float)
    if not known:
        said[:] = np.nan
    judged = np.column_stack([np.isin(labels, c) for c in ([RIGHT], [2, 3, 4], [LACK], [0])]).astype(float)
    weights = weights_of(frame)
    total = max(weights.sum(), 1e-12)
    of = (frame["qid"], n_boot, seed, level, weights, clusters_of(frame))
    gaps = [bootstrap_mean(gap, *of) for gap in (said - judged).T]
    said_share, judged_share = weights @ said / total, weights @ judged / total
    return pd.DataFrame(
        {
            "zone": ["above_k", "between", "below_h", "missing"],
            "share": said_share,
            "classes": ["5", "2, 3, 4", "1", ""],
            "judged_share": judged_share,
            "difference": said_share - judged_share,
            "lo": [gap.lo for gap in gaps],
            "hi": [gap.hi for gap in gaps],
        }
    )
