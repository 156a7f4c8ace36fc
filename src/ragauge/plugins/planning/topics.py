"""The number of topics that each pair of systems of a pilot needs. Sources and assumptions: docs/method.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from ragauge.contract.checks import require, require_count, require_fraction
from ragauge.contract.errors import DataError
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate.outcomes import clusters_by_topic
from ragauge.estimate.pairs import OF_CLASSES, topic_tables
from ragauge.estimate.plan import (
    ALPHA,
    POWER,
    Unit,
    check_difference,
    check_power,
    mcnemar_power,
    of_clusters,
    quantiles,
    topics_for_mean,
)

CONFIDENCE = 0.8
_MOST = 10_000_000  # topics that are looked for


def topics_for_shares(discordant: float, difference: float, power: float = POWER, alpha: float = ALPHA) -> float:
    """Topics for McNemar's exact test to have this power at two shares that differ by `difference`.

    `discordant` as in `mcnemar_power`, at least the difference. The search starts from Connor's formula
    (z_a sqrt(psi) + z_b sqrt(psi - d^2))^2 / d^2 (Miettinen 1968; Connor 1987), which is short of the exact
    test by some topics. inf above ten million.
    """
    check_power(power, alpha)
    check_difference(difference)
    psi = max(discordant, difference)
    z_a, z_b = quantiles(power, alpha)
    start = ((z_a * math.sqrt(psi) + z_b * math.sqrt(psi - difference**2)) / difference) ** 2
    low, high = 1, math.ceil(start * 1.1) + 10
    while mcnemar_power(high, psi, difference, alpha) < power:
        low, high = high, 2 * high
        if high > _MOST:
            return math.inf
    if low == 1 and (tried := math.floor(start * 0.9)) > 1 and (mcnemar_power(tried, psi, difference, alpha) < power):
        low = tried
    while high - low > 1:
        middle = (low + high) // 2
        if mcnemar_power(middle, psi, difference, alpha) < power:
            low = middle
        else:
            high = middle
    return float(high)


def topics_for_equivalence(sd: float, margin: float, power: float = POWER, alpha: float = ALPHA) -> float:
    """Topics for two one-sided tests at alpha to show equal systems equivalent within the margin.

    `sd` is the standard deviation of the topics' differences. n = (z_a + z_b)^2 sd^2 / margin^2 + z_a^2 / 2 with the
    normal quantiles of 1 - alpha and of (1 + power) / 2 (Phillips 1990).
    """
    check_power(power, alpha)
    z_a, z_b = quantiles((1 + power) / 2, 2 * alpha)
    return float(math.ceil(((z_a + z_b) * sd / margin) ** 2 + z_a**2 / 2))


def sd_upper(values: np.ndarray, confidence: float = CONFIDENCE, bounded: bool = True) -> float:
    """An upper confidence limit of the standard deviation behind `values`.

    sqrt(df s^2 / the (1 - confidence) quantile of chi^2 with df), df = 2n / (g + 2n/(n - 1)) with the excess
    kurtosis g, so n - 1 for normal values (Box 1953). A plan from this limit has its power with at least this
    confidence (Browne 1995). Where no value differs, it is the largest spread of differences in [-1, 1] at which none
    might be seen to differ from 0; NaN for others (`bounded=False`).
    """
    from scipy.stats import chi2, kurtosis

    n = len(values)
    if n < 2:
        raise DataError(f"pilot: {n} topic(s); a variance takes at least 2")
    variance = float(values.var(ddof=1))
    if variance < 1e-18:
        return math.sqrt(1 - (1 - confidence) ** (1 / n)) if bounded else math.nan
    excess = float(kurtosis(values, bias=False)) if n > 3 else 0.0
    df = 2 * n / max(excess + 2 * n / (n - 1), 1e-3)
    return math.sqrt(df * variance / float(chi2.ppf(1 - confidence, df)))


def share_upper(hits: int, n: int, confidence: float = CONFIDENCE) -> float:
    """An upper confidence limit of the share behind `hits` of n (Clopper & Pearson 1934)."""
    from scipy.stats import beta

    return 1.0 if hits >= n else float(beta.ppf(confidence, hits + 1, n - hits))


def plan_topics(
    frame: pd.DataFrame,
    measure: str,
    difference: float,
    power: float = POWER,
    alpha: float = ALPHA,
    group: str = "system",
    comparisons: int | None = None,
    confidence: float = CONFIDENCE,
    answers: Sequence[AnswerMeasureInfo] = (),
    equal: bool = False,
) -> pd.DataFrame:
    """The number of topics that each pair of systems of a pilot needs for a difference, the fewest first.

    `frame` has one row per topic and group, as in `compare_pairs`; `measure` is one of its measures. Returns
    [a, b, n, spread, spread_upper, topics, topics_upper]. n: topics of the pilot. spread: the standard deviation of
    their differences; for `correct` and `hallucination` the share of topics on which only one of the two counts.
    spread_upper: its upper limit (`sd_upper`, `share_upper`). topics and topics_upper: the number from the one and from
    the other, inf where no number is enough. A pilot whose differences are all equal does not tell the spread: topics
    is NaN, and topics_upper what is enough all the same. Each test is at alpha / comparisons (by default all pairs).
    With `equal` the difference is the margin within which a pair without a difference is to be shown equal
    (`topics_for_equivalence`), and spread is a standard deviation for every measure.
    Where the pilot has clusters, every measure is planned for the sign-flip test over clusters like its own; spread is
    then what an independent topic would have. Raises ConfigError for values out of range, and for a measure that the
    pilot does not have; DataError where a pair has fewer than two topics or clusters.
    """
    unit: Unit = next((info.unit for info in answers if info.name == measure), "share")
    check_power(power, alpha)
    check_difference(difference, unit)
    require_fraction("confidence", confidence)
    tables = topic_tables(frame, group, answers)
    require("measure", measure, measure in tables, (", ".join(tables) or "none") + " in this pilot")
    couples = list(combinations(tables[measure].columns, 2))
    if comparisons is not None:
        require_count("comparisons", comparisons)
    each = alpha / (comparisons or max(len(couples), 1))
    rows = []
    for a, b in couples:
        differences = (tables[measure][a] - tables[measure][b]).dropna()
        values = differences.to_numpy(dtype=float)
        clusters, per = clusters_by_topic(frame, differences.index), 1.0
        if clusters is not None:
            values = of_clusters(values, clusters)
            per = len(differences) / max(len(values), 1)
        if len(values) < 2:
            what = "topic(s)" if clusters is None else "cluster(s)"
            raise DataError(f"pilot: {len(values)} {what} of {a} and {b}; a variance takes at least 2")
        if measure in OF_CLASSES and clusters is None and not equal:
            hits = math.ceil(float((values**2).sum()) - 1e-9)
            spread, upper = hits / len(values), share_upper(hits, len(values), confidence)
            topics = [topics_for_shares(psi, difference, power, each) for psi in (spread, upper)]
        else:
            spread, upper = float(values.std(ddof=1)), sd_upper(values, confidence, unit != "score")
            needed = topics_for_equivalence if equal else topics_for_mean
            topics = [per * needed(sd, difference, power, each) if sd == sd else math.nan for sd in (spread, upper)]
            spread, upper = spread * math.sqrt(per), upper * math.sqrt(per)
            topics = [math.ceil(n) if math.isfinite(n) else n for n in topics]
        if spread < 1e-9:
            topics[0] = math.nan
        rows.append((a, b, len(differences), spread, upper, *topics))
    columns = ["a", "b", "n", "spread", "spread_upper", "topics", "topics_upper"]
    found = pd.DataFrame(rows, columns=columns)
    return found.sort_values(["topics", "a", "b"], na_position="first", ignore_index=True)
