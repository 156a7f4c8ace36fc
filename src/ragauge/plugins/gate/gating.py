"""Tests, topic by topic, whether a system is worse than a baseline by more than a tolerance.

Two one-sided tests of the mean difference d over the topics that both have, oriented so that more is better:
*regressed* rejects d >= -tolerance, *pass* rejects d <= -tolerance (non-inferiority). Where neither does the
topics are too few to tell. Sources, assumptions: docs/method.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from ragauge.contract.checks import is_number, require, require_fraction, require_number
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.metrics import CLASS_SHARES, MEASURE_OF, METRICS, MISSING
from ragauge.estimate.board import REJECTION
from ragauge.estimate.outcomes import LACK, asked, by_cluster, clusters_by_topic, labels_of, with_classes
from ragauge.estimate.pairs import SIGN_FLIPS, Sampled, holm, reach_of, topic_tables
from ragauge.estimate.plan import POWER, of_clusters, topics_for_mean
from ragauge.estimate.powered import difference_statistics, powered_means
from ragauge.estimate.signs import flipped_sums
from ragauge.estimate.slicing import FEW_TOPICS
from ragauge.plugins.gate.lower_bounds import bounded_mean_of_few, skewed_mean
from ragauge.plugins.gate.rules import ALPHA

Decision = Literal["pass", "regressed", "inconclusive"]

# Metrics of class shares by what `topic_tables` calls them.
_CLASSES = {**MEASURE_OF, **{share.name: share.name for share in CLASS_SHARES}}
SECOND_LOOK = 0.2  # of alpha: the level at which an inconclusive gate is looked at again
_EXACT = int(math.log2(SIGN_FLIPS))  # differences that are flipped in every way


@dataclass(frozen=True)
class Paired:
    """A difference from a baseline, and its tests.

    difference, lo, hi: the system less the baseline, and the limits of the one-sided tests. p_pass: that it
    is worse by the tolerance or more; p_regressed: that it is worse by no more than that. n: topics of both.
    missing: the share of topics that lack a value in one of them, or a verdict. margin: how far it is from
    the tolerance, negative where it is worse. spread: the standard deviation of a topic's difference, as the
    tests see it.
    """

    difference: float
    lo: float
    hi: float
    p_pass: float
    p_regressed: float
    n: int
    missing: float
    margin: float
    spread: float


def comparable_metrics(answers: Sequence[AnswerMeasureInfo] = ()) -> list[str]:
    """The metrics with a value per topic, which can be compared with a baseline."""
    return ["ir_score", *_CLASSES, MISSING, REJECTION, *(info.name for info in answers)]


def check_tolerance(
    metric: str, tolerance: object, answers: Sequence[AnswerMeasureInfo] = (), key: str = "tolerance"
) -> None:
    """ConfigError for a metric without values per topic, and for a tolerance below 0 or, of shares, at 1 or above."""
    known = comparable_metrics(answers)
    if metric not in known:
        raise ConfigError(
            f"{key}: {metric} has no value for every topic, so no baseline compares; allowed are " + ", ".join(known)
        )
    if _is_bounded(metric, answers):
        ok = is_number(tolerance) and 0 <= tolerance < 1  # type: ignore[operator]
        require(key, tolerance, ok, "numbers from 0 to below 1 (0.02 is two points)")
    else:
        require_number(key, tolerance, 0)


def _is_bounded(metric: str, answers: Sequence[AnswerMeasureInfo]) -> bool:
    return all(info.unit == "share" for info in answers if info.name == metric)


def paired_difference(
    frame: pd.DataFrame,
    new: str,
    base: str,
    metric: str,
    tolerance: float,
    group: str = "run_id",
    answers: Sequence[AnswerMeasureInfo] = (),
    alpha: float = ALPHA,
    seed: int = 0,
) -> Paired:
    """The difference of one metric between the groups `new` and `base`, over the topics of both.

    `frame` is one of outcomes with a row per topic and group; `metric` is one of `comparable_metrics`.
    Yes-or-no values are tested by Tango's score test, other ones by t tests and bounds of means. A regression must also
    be rejected by the exact test of no difference at all (McNemar's, the sign-flip test). Where the frame has clusters,
    the tests of scores are those of values too, over clusters (`_of_clusters`). Where a sample of topics was judged,
    class shares are compared by the prediction-powered difference. ConfigError for a tolerance or alpha out of range
    and for a metric without values per topic; DataError where fewer than two topics have a value in both.
    """
    require_fraction("alpha", alpha)
    check_tolerance(metric, tolerance, answers)
    rows = frame[frame[group].isin([new, base])]
    better = METRICS[metric].better if metric in METRICS else next(i.direction for i in answers if i.name == metric)
    higher = better == "higher"  # of a class without a direction fewer answers are better
    sampled = _sampled(rows, new, base, metric, group) if metric in _CLASSES else None
    if sampled is not None:
        found = _by_sample(*sampled, tolerance, alpha, higher)
        of_topics = rows.groupby("qid", sort=False)[group].nunique().eq(2)
        return replace(found, missing=max(1 - float(of_topics.mean()), _without_verdict(rows, group)))
    table = _table(rows, metric, group, answers)
    pair = table.reindex(columns=[new, base]).astype(float)
    if not np.isfinite(pair.to_numpy()[pair.notna().to_numpy()]).all():
        raise DataError(f"{metric}: a value is infinite")
    some, both = pair.notna().any(axis=1), pair.notna().all(axis=1)
    n = int(both.sum())
    if n < 2:
        lacking = [name for name in (new, base) if pair[name].notna().sum() < 2]
        who = "both" if len(lacking) != 1 else "the run" if lacking == [new] else "the baseline"
        raise DataError(f"{metric}: {n} topic(s) with a value in both runs; a comparison takes 2 ({who} lack it)")
    missing = 1 - n / int(some.sum())
    if metric in _CLASSES:
        missing = max(missing, _without_verdict(rows, group))
    own, other = pair[both].to_numpy().T
    reach = reach_of(pair[both], metric, answers)
    clusters = clusters_by_topic(rows, pair.index[both])
    return replace(paired_test(own, other, tolerance, higher, reach, alpha, seed, clusters), missing=missing)


def paired_test(
    own: np.ndarray,
    other: np.ndarray,
    tolerance: float,
    higher: bool = True,
    reach: float = 1.0,
    alpha: float = ALPHA,
    seed: int = 0,
    clusters: np.ndarray | None = None,
) -> Paired:
    """Tests `own` less `other`, float [topics] each without NaN, at least two topics.

    `higher` says that more is better, `reach` how far apart two values of a topic can be. Where all values
    are 0 or 1 they are tested as shares, unless `clusters` [topics], numbered, are what varies. DataError for fewer
    than two clusters.
    """
    d = own - other if higher else other - own
    if clusters is not None:
        found = _of_clusters(d, clusters, tolerance, alpha, reach, seed)
    elif np.isin(own, (0.0, 1.0)).all() and np.isin(other, (0.0, 1.0)).all():
        found = _of_shares(d, tolerance, alpha)
    else:
        found = _of_scores(d, d, tolerance, alpha, reach, seed)
    return found if higher else _turned(found)


def decide(found: Sequence[Paired], alpha: float = ALPHA) -> list[Decision]:
    """The verdict on each of several differences from a baseline.

    `regressed` is after Holm's correction over all of them: the gate reports a regression without a cause with
    probability at most alpha. `pass` needs no correction: all pass although one is worse by its tolerance with
    probability at most alpha, whatever their number (intersection-union test).
    """
    corrected = holm(np.array([one.p_regressed for one in found], dtype=float))
    return [
        "regressed" if p < alpha else "pass" if one.p_pass < alpha else "inconclusive"
        for one, p in zip(found, corrected, strict=True)
    ]


def topics_to_decide(found: Paired, n_tests: int = 1, alpha: float = ALPHA, power: float = POWER) -> float:
    """The topics that a second look needs to decide, with this power, if differences persist; inf for none.

    Those of `topics_for_mean` for the distance from the tolerance, one-sided, at a fifth of alpha: looked at
    again at alpha, an inconclusive difference has a second chance to be wrong. The two looks together err
    in at most 6/5 alpha. A regression is planned at that over the number of tests.
    """
    if not found.margin or not math.isfinite(found.spread):
        return math.inf
    each = alpha * SECOND_LOOK / (1 if found.margin > 0 else n_tests)
    return max(topics_for_mean(found.spread, abs(found.margin), power, 2 * each), found.n + 1)


# --- the values ---------------------------------------------------------------------------------------------


def _table(rows: pd.DataFrame, metric: str, group: str, answers: Sequence[AnswerMeasureInfo]) -> pd.DataFrame:
    """[qid x group] of the metric's values; NaN for missing ones."""
    if metric in (REJECTION, MISSING):
        if metric == REJECTION:
            marked = rows["unanswerable"].eq(True) if "unanswerable" in rows else pd.Series(False, rows.index)
            judged = asked(rows[marked])
            judged = judged[judged["label"].notna()]
            counts = labels_of(judged) == LACK
        else:
            judged = asked(with_classes(rows))
            counts = labels_of(judged) == 0
        flat = judged[["qid", group]].assign(value=counts.astype(float))
        return flat.pivot(index="qid", columns=group, values="value")
    name = _CLASSES.get(metric, metric)
    classes = (name,) if metric in _CLASSES else ()
    own = [info for info in answers if info.name == metric and info.name in rows]
    tables = topic_tables(rows, group, own, classes)
    return tables.get(name, pd.DataFrame(columns=rows[group].unique(), dtype=float))


def _without_verdict(rows: pd.DataFrame, group: str) -> float:
    """The largest share, over both groups, of answers to judge without a verdict."""
    judged = asked(with_classes(rows))
    shares = judged["label"].isna().groupby(judged[group]).mean()
    return float(shares.max()) if len(shares) else 1.0


def _sampled(
    rows: pd.DataFrame, new: str, base: str, metric: str, group: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None] | None:
    classed = with_classes(rows)
    name = _CLASSES[metric]
    of = Sampled.of(classed, group, (name,))
    values = topic_tables(classed, group, (), (name,)).get(name)
    if of is None or values is None or not {new, base} <= set(values):
        return None
    return of.differences([(new, base)], name, values)


# --- the tests ----------------------------------------------------------------------------------------------


def _turned(found: Paired) -> Paired:
    """The difference with its sign reversed, for a metric whose lower values are better."""
    return replace(found, difference=0.0 - found.difference, lo=0.0 - found.hi, hi=0.0 - found.lo)


def _of_clusters(
    d: np.ndarray, clusters: np.ndarray, tolerance: float, alpha: float, reach: float, seed: int
) -> Paired:
    """Tests scores by values of clusters, whose mean and variance equal those of the topics' differences.

    A cluster's value reaches further than a topic's by as much as the largest cluster is above the mean size. n counts
    topics, and the spread is what one would have if it were independent.
    """
    rows = by_cluster(np.ones(len(d)), clusters)
    if len(rows) < 2:
        raise DataError("1 cluster with a value in both runs; a comparison takes 2")
    size, most = float(rows.mean()), float(rows.max() / rows.mean())
    reach = reach * most + abs(float(d.mean())) * (most - 1)
    found = _of_scores(of_clusters(d, clusters), by_cluster(d, clusters) / size, tolerance, alpha, reach, seed)
    return replace(found, n=len(d), spread=found.spread * math.sqrt(size))


def _of_scores(d: np.ndarray, flipped: np.ndarray, tolerance: float, alpha: float, reach: float, seed: int) -> Paired:
    """Tests mean differences: both directions by t tests robust to long tails, a regression also by the sign-flip test.

    Few topics that differ, or none, do not say that no other could: where fewer than ten do, the bound is one
    for any distribution from -reach on. `flipped` are the values of the sign-flip test: `d`, but for clusters.
    """
    n, mean, spread = len(d), float(d.mean()), float(d.std(ddof=1))
    few = int((flipped != 0).sum()) < FEW_TOPICS
    low = bounded_mean_of_few(d, -tolerance, reach, alpha) if few else skewed_mean(d, -tolerance, alpha)
    high = skewed_mean(-d, tolerance, alpha)
    most = bounded_mean_of_few(-d, tolerance, reach, alpha).limit if few else high.limit
    p_regressed = high.p
    if p_regressed < alpha:  # else the flips cannot make it one
        p_regressed = max(p_regressed, less_than_exchangeable(flipped, seed))
    return Paired(
        mean,
        min(low.limit, mean),
        max(-most, mean),
        low.p,
        p_regressed,
        n,
        0.0,
        mean + tolerance,
        low.spread if mean > -tolerance else spread,
    )


def _by_t(distance: float, error: float, df: float) -> tuple[float, float]:
    """One-sided p of the mean being at most, and at least, so far below the observed one."""
    from scipy.special import stdtr

    if error <= 0:  # all differences are equal
        return float(distance <= 0), float(distance >= 0)
    return float(stdtr(df, -distance / error)), float(stdtr(df, distance / error))


def less_than_exchangeable(d: np.ndarray, seed: int = 0) -> float:
    """One-sided p of the sign-flip test: how often random signs give a sum as low as that of `d` [topics].

    Exact to 13 differences that are not 0, else from 9,999 flips, the observed one among them.
    """
    moved = d[d != 0]
    if not len(moved):
        return 1.0
    most = moved.sum() + 1e-9 * np.abs(moved).sum()
    if len(moved) <= _EXACT:
        signs = 1 - 2 * (np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved)) & 1)
        return float((signs @ moved <= most).mean())
    low = sum(int((block <= most).sum()) for block in flipped_sums(moved[:, None], SIGN_FLIPS, seed))
    return (low + 1) / (SIGN_FLIPS + 1)


def _of_shares(d: np.ndarray, tolerance: float, alpha: float) -> Paired:
    """Tests differences of yes-or-no values by Tango's score test; a regression also by McNemar's test."""
    from scipy.optimize import brentq
    from scipy.special import bdtr, ndtr, ndtri

    n, won, lost = len(d), int((d > 0).sum()), int((d < 0).sum())
    mean, z_alpha = float(d.mean()), -float(ndtri(alpha))
    z, spread = tango(won, lost, n, -tolerance)
    exact = float(bdtr(won, won + lost, 0.5)) if lost > won else 1.0

    def limit(end: float) -> float:
        """The value between the mean and -1 or 1 at which the statistic is critical."""

        def beyond(shift: float) -> float:
            return -end * tango(won, lost, n, shift)[0] - z_alpha

        last, first = end * (1 - 1e-9), mean + end * 1e-12
        return end if beyond(last) < 0 else float(brentq(beyond, first, last, xtol=1e-9))

    p_regressed = max(float(ndtr(z)), exact)
    margin = mean + tolerance
    return Paired(mean, limit(-1.0), limit(1.0), float(ndtr(-z)), p_regressed, n, 0.0, margin, spread)


def tango(won: int, lost: int, n: int, shift: float) -> tuple[float, float]:
    """Score statistic for a difference `shift` (in (-1, 1)) of two paired shares, and its spread.

    `won` and `lost` are the topics on which only the one or only the other counts, of n. The variance is that
    of the likeliest shares with this difference (Tango 1998, equations 6 to 8); the spread is a topic's.
    """
    a = 2 * n
    b = -won - lost + (2 * n - won + lost) * shift
    c = -lost * shift * (1 - shift)
    share_lost = (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    variance = max(2 * share_lost + shift * (1 - shift), 0.0)
    distance = won - lost - n * shift
    if variance < 1e-15:  # no topic differs, and no shift is asked about
        return 0.0, 0.0
    return distance / math.sqrt(n * variance), math.sqrt(variance)


def _by_sample(
    values: np.ndarray, predicted: np.ndarray, judged: np.ndarray, stratum: np.ndarray, clusters: np.ndarray | None,
    tolerance: float, alpha: float, higher: bool,
) -> Paired:  # fmt: skip
    """The prediction-powered difference over all topics, of which a sample is judged, by t."""
    from scipy.special import stdtrit

    sign = 1 if higher else -1
    n = int(judged.sum())
    if n < 2:
        raise DataError(f"{n} topic(s) were judged in both runs; a comparison takes 2")
    found = powered_means(sign * values[:, None], sign * predicted[:, None], judged, stratum, 0, clusters)
    middle, error = (float(x[0]) for x in difference_statistics(found))
    p_pass, p_regressed = _by_t(middle + tolerance, error, found.df)
    limit = -float(stdtrit(found.df, alpha)) * error
    mean = float(found.estimate[0])
    whole = Paired(
        mean,
        middle - limit,
        middle + limit,
        p_pass,
        p_regressed,
        n,
        0.0,
        mean + tolerance,
        error * math.sqrt(n),
    )
    return whole if higher else _turned(whole)
