"""Every measure by slice of the topics, averages over slices, and differences of two systems by slice.

A slice is estimated as all topics are: shares and scores by `bounded_mean`, other answer measures by a
bootstrap, shares of a judged sample by `ppi_shares`. Every interval and every average holds by itself; the
paired tests are corrected over all slices. Beside each stands its shrunk value (`shrunk_means`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.metrics import MISSING
from ragauge.contract.outcomes import PREFIX
from ragauge.estimate.board import measured_mean, rejection, share_estimates
from ragauge.estimate.intervals import LEVEL, Estimate, bounded_mean, effective_topics, units_among, wilson_interval
from ragauge.estimate.outcomes import asked, clusters_of, labels_of, scored, share_columns, with_classes
from ragauge.estimate.pairs import compare_pairs, corrected
from ragauge.estimate.ppi import ppi_shares
from ragauge.estimate.shrinkage import shrunk_means
from ragauge.estimate.slicing import FEW_TOPICS, NOT_KNOWN, in_order, slicings

Weights = Mapping[str, Mapping[str, float]]
SHRUNK = ("shrunk", "shrunk_lo", "shrunk_hi")
ABOUT_SHRUNK = (
    "A value alone is that of the slice's own topics. A shrunk one is moved towards the other slices, further where "
    "the slice has few topics and where the slices differ little. Compare slices, and look for the worst, by the "
    "shrunk ones. "
    "The shrunk intervals hold 95 % of the slices on average; that of a slice unlike all others holds it less often."
)


@dataclass(frozen=True)
class SliceTables:
    """`slice_estimates`, `macro_averages` and `slice_differences` (None without two systems)."""

    estimates: pd.DataFrame
    averages: pd.DataFrame
    differences: pd.DataFrame | None = None

    @property
    def some_missing(self) -> bool:
        """Whether any slice lacks verdicts."""
        return bool(self.estimates.loc[self.estimates["measure"] == MISSING, "value"].gt(0).any())


def slice_estimates(
    frame: pd.DataFrame,
    group: str | None = None,
    answers: Sequence[AnswerMeasureInfo] = (),
    n_boot: int = 1000,
    seed: int = 0,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Every measure by slice: [group, slicing, slice, measure, value, lo, hi, n, effective_n, small, *SHRUNK].

    `frame` has a row per topic (of each `group`, such as system, where one is named; the column is left out
    else), with columns `slice:<slicing>` (`ragauge.estimate.slicing`). Measures: `ir_score` over the topics that have
    one; the shares of `class_shares` over answerable topics that can be judged, where any has a label;
    `rejection_share`, class 1 among unanswerable topics. Each of `answers` is over the topics with a value. n counts
    these topics, and effective_n the yes-or-no values that determine the mean as well (NaN for a measure of any size).
    `small` says that n is below ten; lo and hi are NaN for one topic. `shrunk` with its ends is the value shrunk
    towards that of the slicing's other slices (`shrunk_means`), NaN for a measure of any size and a slice without
    others. A measure without a topic in the slice has no row. Where a sample of topics was judged the shares are those
    of `ppi_shares`, and are left out where it judged too few of the slice. Empty without slices.
    """
    keys = [group] if group else []
    rows = []
    for by in slicings(frame):
        column = PREFIX + by
        for label in in_order(frame[column]):
            part = frame[frame[column] == label]
            for name, of_group in part.groupby(group, sort=False) if group else [("", part)]:
                head = (name, by, label) if group else (by, label)
                for measure, e, effective in _estimates(of_group, answers, n_boot, seed, level):
                    rows.append((*head, measure, e.value, e.lo, e.hi, e.n, effective, e.n < FEW_TOPICS))
    columns = ["slicing", "slice", "measure", "value", "lo", "hi", "n", "effective_n", "small"]
    found = pd.DataFrame(rows, columns=[*keys, *columns])
    signed = [info.name for info in answers if info.unit == "signed"]
    return _with_shrunk(found, [*keys, "slicing", "measure"], signed, level)


def _with_shrunk(
    rows: pd.DataFrame, keys: list[str], signed: Sequence[str], level: float, of_differences: bool = False
) -> pd.DataFrame:
    """The rows with columns SHRUNK, shrunk among equal `keys`; `signed` measures lie in [-1, 1]."""
    found = np.full((len(rows), len(SHRUNK)), np.nan)
    measured = rows[["value", "n", "effective_n"]].to_numpy(dtype=float)
    for places in rows.groupby(keys, sort=False).indices.values():
        is_signed = rows["measure"].iat[places[0]] in signed
        limits = (-1.0 - is_signed, 1.0 + is_signed) if of_differences else (-1.0 * is_signed, 1.0)
        value, n, effective = measured[places].T
        found[places] = shrunk_means(value, n, effective, limits, level).T
    return rows.assign(**dict(zip(SHRUNK, found.T, strict=True)))


def _estimates(
    part: pd.DataFrame, answers: Sequence[AnswerMeasureInfo], n_boot: int, seed: int, level: float
) -> Iterator[tuple[str, Estimate, float]]:
    """Every measure with a value in one slice, with its effective number of topics."""
    known, clusters = scored(part)["ir_score"], clusters_of(scored(part))
    if len(known):
        yield "ir_score", bounded_mean(known, None, level, clusters), _effective(known, clusters)
    for name, (share, effective) in _shares(with_classes(part), level).items():
        yield name, share, effective
    for name, share in rejection(part, level).items():
        if share.n:
            yield name, share, float(share.n)
    for info in answers:
        if info.name in part and len(values := part[info.name].dropna()):
            clusters = clusters_of(part.loc[values.index])
            shares = (values + 1) / 2 if info.unit == "signed" else values
            effective = _effective(shares, clusters) if info.unit != "score" else float("nan")
            yield info.name, measured_mean(part, info, n_boot, seed, level), effective


def _effective(values: pd.Series | np.ndarray, clusters: pd.Series | None) -> float:
    """The effective number of yes-or-no values of these scores or shares, one per topic."""
    codes, n, n_topics = units_among(len(values), None, clusters)
    sums, rows = np.bincount(codes, np.asarray(values, dtype=float), minlength=n), np.bincount(codes).astype(float)
    return effective_topics(sums, rows, None, n_topics, LEVEL) if n > 1 else 1.0


def _shares(rows: pd.DataFrame, level: float) -> dict[str, tuple[Estimate, float]]:
    """The class shares of these topics; {} without labels, or with too few in a judged sample."""
    if not rows["label"].notna().any():
        return {}
    if len(asked(rows)) == len(rows):
        numbered, clusters = rows.assign(qid=np.arange(len(rows))), clusters_of(rows)  # faster to tell apart than texts
        shares, of = share_estimates(numbered, level), share_columns(labels_of(rows))
        return {
            name: (e, float(e.n) if clusters is None else _effective(of[name], clusters)) for name, e in shares.items()
        }
    try:
        found = ppi_shares(rows, level)
    except DataError:
        return {}
    found = found.astype(dict.fromkeys(("estimate", "lo", "hi", "effective_n"), float))
    effective = found["effective_n"].where(found["effective_n"] > 0, found["n_judged"])
    return {
        row["share"]: (Estimate(row["estimate"], row["lo"], row["hi"], int(row["n_judged"]), level), n)
        for row, n in zip(found.to_dict("records"), effective, strict=True)
    }


def macro_averages(
    estimates: pd.DataFrame,
    weights: Weights | None = None,
    answers: Sequence[AnswerMeasureInfo] = (),
    level: float = LEVEL,
    mixed: Collection[str] = (),
) -> pd.DataFrame:
    """The mean over the slices of every slicing: [group, slicing, measure, value, lo, hi, n, slices].

    `estimates` are those of `slice_estimates`, at the same level. All slices count alike, or by `weights` {slicing:
    {slice: weight}}, which need not add up to 1. No average has topics whose value is not known, or slices without the
    measure; `slices` and n count its slices and topics. No row where fewer than two slices have weight and measure.
    Intervals are over topics, the slices being given (see `_interval`); NaN for a measure of any size where a slice has
    none. Slices of a slicing in `mixed` have clusters in common (`mixed_slicings`): they are taken to err all alike,
    which is the most that their average can err.
    """
    keys = [str(column) for column in itertools.takewhile(lambda c: c != "slicing", estimates.columns)]
    unbounded = {info.name for info in answers if not info.bounded}
    kept = estimates[estimates["slice"] != NOT_KNOWN]
    rows = []
    for at, part in kept.groupby([*keys, "slicing", "measure"], sort=False):
        *_, by, measure = at
        given = (weights or {}).get(str(by))
        w = np.ones(len(part)) if given is None else part["slice"].map(given).fillna(0).to_numpy(dtype=float)
        part, w = part[w > 0], w[w > 0] / w.sum()
        if len(part) < 2:
            continue
        value, lo, hi, n, effective = part[["value", "lo", "hi", "n", "effective_n"]].to_numpy(dtype=float).T
        mean = float(w @ value)
        if measure in unbounded:
            below, above = (_error(w, (value - end) ** 2, by in mixed) for end in (lo, hi))
            ends = mean - below, mean + above
        else:
            ends = _interval(value, n, effective, w, level, by in mixed)
        rows.append((*at, mean, *ends, int(n.sum()), len(part)))
    return pd.DataFrame(rows, columns=[*keys, "slicing", "measure", "value", "lo", "hi", "n", "slices"])


def mixed_slicings(frame: pd.DataFrame) -> list[str]:
    """The slicings with clusters that span several slices."""
    if (clusters := clusters_of(frame)) is None:
        return []
    return [by for by in slicings(frame) if frame[PREFIX + by].groupby(clusters.to_numpy()).nunique().gt(1).any()]


def _error(w: np.ndarray, variances: np.ndarray, alike: bool) -> float:
    """The standard error of a weighted mean of independent, or of perfectly correlated, means."""
    return float(w @ np.sqrt(variances)) if alike else math.sqrt(float((w**2) @ variances))


def _interval(
    value: np.ndarray, n: np.ndarray, effective: np.ndarray, w: np.ndarray, level: float, alike: bool
) -> tuple[float, float]:
    """Wilson's interval of a weighted mean of k independent means in [0, 1], at its effective number.

    That is p(1 - p) over the variance of the mean, the sum of w²·v. Each slice gets 2/k topics at 0 and as many at 1
    (Price & Bonett 2004), so that few equal values do not pass for certain. v is p(1 - p) over the slice's effective
    number of topics less the one that its own mean takes.
    """
    added = 2 / len(value)
    p = (value * effective + added) / (effective + 2 * added)
    of_means = p * (1 - p) / (effective + 2 * added) * (n + 2 * added) / (n + 2 * added - 1)
    middle, mean = float(w @ p), min(max(float(w @ value), 0.0), 1.0)
    lo, hi = wilson_interval(mean, middle * (1 - middle) / _error(w, of_means, alike) ** 2, level)
    return min(lo, mean), max(hi, mean)


def slice_differences(
    frame: pd.DataFrame,
    a: str,
    b: str,
    group: str = "system",
    answers: Sequence[AnswerMeasureInfo] = (),
    seed: int = 0,
    level: float = LEVEL,
    family: str = "measure",
) -> pd.DataFrame:
    """Paired a minus b by slice: [slicing, slice, measure, a, b, difference, lo, hi, p, p_holm, n, *SHRUNK].

    `frame` as in `slice_estimates`, with these two among the `group`s; measures, intervals and p as in
    `compare_pairs`. p_holm is `corrected` over all slices and slicings. Slices with fewer than
    ten topics that both have are not tested, and have no row. SHRUNK as in `slice_estimates`, the variance of a
    difference being that of its interval.
    """
    from scipy.special import ndtri

    rows = frame[frame[group].isin([a, b])]
    parts = []
    for by in slicings(rows):
        for label in in_order(rows[PREFIX + by]):
            part = rows[rows[PREFIX + by] == label]
            if part["qid"].nunique() >= FEW_TOPICS and part[group].nunique() == 2:
                found = compare_pairs(part, group, seed, level, answers)
                parts.append(found.assign(slicing=by, slice=label))
    columns = ["slicing", "slice", "measure", "a", "b", "difference", "lo", "hi", "p", "p_holm", "n", *SHRUNK]
    if not parts:
        return pd.DataFrame(columns=columns)
    every = pd.concat(parts, ignore_index=True)
    every = every[every["n"] >= FEW_TOPICS].reset_index(drop=True)
    turned = every["a"].ne(a)
    every.loc[turned, ["lo", "hi"]] = 0.0 - every.loc[turned, ["hi", "lo"]].to_numpy()
    every.loc[turned, "difference"] = 0.0 - every.loc[turned, "difference"]
    every = every.assign(a=a, b=b)
    variance = ((every["hi"] - every["lo"]) / (-2 * ndtri((1 - level) / 2))) ** 2
    signed, of_any_size = ([info.name for info in answers if info.unit == unit] for unit in ("signed", "score"))
    reach = 1.0 + every["measure"].isin(signed)  # the largest difference
    # Of a share x = (1 + difference / reach) / 2, x (1 - x) over its variance.
    spare = reach**2 - every["difference"] ** 2
    effective = (spare / variance).mask(spare < 1e-9, every["n"]).mask(every["measure"].isin(of_any_size))
    every = corrected(every, family).assign(value=every["difference"], effective_n=effective)
    return _with_shrunk(every, ["slicing", "measure"], signed, level, of_differences=True)[columns]
