"""How many topics show a difference between two systems, and which difference a number of topics shows.

The tests are those of `compare_pairs`: the sign-flip test of mean differences, whose power is that of the
paired t-test, and McNemar's exact test. Both are planned at alpha over the number of comparisons, which is
what Holm's correction asks of the smallest p. Sources and assumptions: docs/method.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd

from ragauge.contract.checks import is_number, require, require_count, require_number
from ragauge.contract.errors import DataError
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.estimate.intervals import LEVEL
from ragauge.estimate.outcomes import asked, by_cluster, clusters_by_topic
from ragauge.estimate.pairs import _SIGN_FLIPS, OF_CLASSES, topic_tables

POWER, ALPHA, CONFIDENCE = 0.8, 0.05, 0.8
Unit = Literal["share", "ratio", "signed", "score"]
_MOST = 10_000_000  # topics that are looked for
_ROOM = 0.005  # between a mean and 0 or 1 within which no difference can show


def check_power(power: object, alpha: object) -> None:
    """ConfigError unless 0 < alpha < power < 1."""
    require("alpha", alpha, is_number(alpha) and 0 < alpha < 1, "numbers above 0 and below 1")  # type: ignore[operator]
    ok = is_number(power) and alpha < power < 1  # type: ignore[operator]
    require("power", power, ok, f"numbers above alpha ({alpha:g}) and below 1")


def check_difference(difference: object, unit: Unit = "share") -> None:
    """ConfigError unless the difference is above 0, and for shares and the IR score at most 1."""
    require_number("difference", difference, 0, {"score": math.inf, "signed": 2}.get(unit, 1), above=True)


def check_confidence(confidence: object) -> None:
    """ConfigError unless the confidence is above 0 and below 1."""
    ok = is_number(confidence) and 0 < confidence < 1  # type: ignore[operator]
    require("confidence", confidence, ok, "numbers above 0 and below 1")


# --- mean differences: the sign-flip test -------------------------------------------------------------------


def topics_for_mean(sd: float, difference: float, power: float = POWER, alpha: float = ALPHA) -> float:
    """Topics on which the two-sided sign-flip test of a mean difference has this power.

    `sd` is the standard deviation of the topics' differences. n = (z_a + z_b)^2 sd^2 / difference^2
    + z_a^2 / 2, z_a and z_b the normal quantiles of 1 - alpha/2 and of the power: that of the paired t-test
    to within a topic (Guenther 1981), and at least as many as can reach p < alpha at all. inf where the test
    cannot: its random flips show no p of less than 0.0001.
    """
    check_power(power, alpha)
    check_difference(difference, "score")
    if alpha <= 1 / (_SIGN_FLIPS + 1):
        return math.inf
    z_a, z_b = _quantiles(power, alpha)
    # All of n differences on one side have p = 2^(1-n).
    least = math.floor(1 - math.log2(alpha)) + 1
    return float(max(math.ceil(((z_a + z_b) * sd / difference) ** 2 + z_a**2 / 2), least))


def detectable_mean(sd: float, n: int, power: float = POWER, alpha: float = ALPHA) -> float:
    """The difference for which `topics_for_mean` is n; NaN where n topics can show none."""
    check_power(power, alpha)
    z_a, z_b = _quantiles(power, alpha)
    least = math.floor(1 - math.log2(alpha)) + 1
    if n < least or n <= z_a**2 / 2 or alpha <= 1 / (_SIGN_FLIPS + 1):
        return math.nan
    return (z_a + z_b) * sd / math.sqrt(n - z_a**2 / 2)


def _quantiles(power: float, alpha: float) -> tuple[float, float]:
    from scipy.stats import norm

    return float(norm.isf(alpha / 2)), float(norm.ppf(power))


# --- differences of shares: McNemar's exact test ------------------------------------------------------------


def mcnemar_power(n: int, discordant: float, difference: float, alpha: float = ALPHA) -> float:
    """How often McNemar's exact test rejects at alpha on n topics.

    `discordant` is the share of topics on which only one of the two systems counts (at least `difference`,
    the difference of the two shares). Summed over the number of such topics, and exact but for those beyond
    eight standard deviations (Duffy 1984).
    """
    from scipy.stats import binom

    psi = min(max(discordant, abs(difference)), 1.0)
    reach = 8 * math.sqrt(n * psi * (1 - psi)) + 8
    m = np.arange(max(0, math.floor(n * psi - reach)), min(n, math.ceil(n * psi + reach)) + 1)
    critical = binom.ppf(alpha / 2, m, 0.5) - 1  # the largest number of losses with a p below alpha
    won = (psi + difference) / 2 / psi
    rejected = binom.cdf(critical, m, won) + binom.sf(m - critical - 1, m, won)
    return float(binom.pmf(m, n, psi) @ rejected)


def topics_for_shares(discordant: float, difference: float, power: float = POWER, alpha: float = ALPHA) -> float:
    """Topics on which McNemar's exact test of two shares that differ by `difference` has this power.

    `discordant` as in `mcnemar_power`, at least the difference. The search starts from Connor's formula
    (z_a sqrt(psi) + z_b sqrt(psi - d^2))^2 / d^2 (Miettinen 1968; Connor 1987), which is short of the exact
    test by some topics. inf above ten million.
    """
    check_power(power, alpha)
    check_difference(difference)
    psi = max(discordant, difference)
    z_a, z_b = _quantiles(power, alpha)
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


def detectable_share(discordant: float, n: int, power: float = POWER, alpha: float = ALPHA) -> float:
    """The smallest difference of two shares that n topics show with this power; NaN where there is none.

    Where the difference is above `discordant`, as many topics as that are taken to differ.
    """
    check_power(power, alpha)
    if mcnemar_power(n, discordant, 1.0, alpha) < power:
        return math.nan
    low, high = 0.0, 1.0
    while high - low > 1e-5:
        middle = (low + high) / 2
        if mcnemar_power(n, discordant, middle, alpha) < power:
            low = middle
        else:
            high = middle
    return high


# --- how sure a pilot is ------------------------------------------------------------------------------------


def sd_upper(values: np.ndarray, confidence: float = CONFIDENCE, bounded: bool = True) -> float:
    """An upper confidence limit of the standard deviation that `values` are drawn from.

    sqrt(df s^2 / the (1 - confidence) quantile of chi^2 with df), df = 2n / (g + 2n/(n - 1)) with the excess
    kurtosis g, so n - 1 for normal values (Box 1953). A plan from this limit has its power with at least this
    confidence (Browne 1995). Where no value differs, the largest spread of differences in [-1, 1] of which
    none is seen to differ from 0, NaN for others (`bounded=False`).
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
    """An upper confidence limit of the share that `hits` of n were drawn from (Clopper & Pearson 1934)."""
    from scipy.stats import beta

    return 1.0 if hits >= n else float(beta.ppf(confidence, hits + 1, n - hits))


# --- all pairs of a pilot or of a finished sweep ------------------------------------------------------------


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
) -> pd.DataFrame:
    """How many topics each pair of systems of a pilot needs for a difference, the fewest first.

    `frame` has one row per topic and group, as in `compare_pairs`; `measure` is one of its measures. Returns
    [a, b, n, spread, spread_upper, topics, topics_upper]: n topics of the pilot; spread is the standard
    deviation of their differences, of `correct` and `hallucination` the share of topics on which only one of
    the two counts; spread_upper its upper limit (`sd_upper`, `share_upper`); topics from the one and from the
    other, inf where no number is enough. A pilot whose differences are all equal does not tell the spread:
    topics is NaN, and topics_upper what is enough all the same. Each test is at alpha / comparisons (by
    default all pairs). Where the pilot has clusters, every measure is planned for the sign-flip test over clusters
    like its own; spread is then what an independent topic would have. Raises ConfigError for values out of range,
    and for a measure that the pilot does not have; DataError where a pair has fewer than two topics or clusters.
    """
    unit: Unit = next((info.unit for info in answers if info.name == measure), "share")
    check_power(power, alpha)
    check_difference(difference, unit)
    check_confidence(confidence)
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
        if measure in OF_CLASSES and clusters is None:
            hits = math.ceil(float((values**2).sum()) - 1e-9)
            spread, upper = hits / len(values), share_upper(hits, len(values), confidence)
            topics = [topics_for_shares(psi, difference, power, each) for psi in (spread, upper)]
        else:
            spread, upper = float(values.std(ddof=1)), sd_upper(values, confidence, unit != "score")
            topics = [
                per * topics_for_mean(sd, difference, power, each) if sd == sd else math.nan for sd in (spread, upper)
            ]
            spread, upper = spread * math.sqrt(per), upper * math.sqrt(per)
            topics = [math.ceil(n) if math.isfinite(n) else n for n in topics]
        if spread < 1e-9:
            topics[0] = math.nan
        rows.append((a, b, len(differences), spread, upper, *topics))
    columns = ["a", "b", "n", "spread", "spread_upper", "topics", "topics_upper"]
    found = pd.DataFrame(rows, columns=columns)
    return found.sort_values(["topics", "a", "b"], na_position="first", ignore_index=True)


def of_clusters(values: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """float64 [clusters]: values whose mean and its variance are those of [topics] `values` over these clusters.

    The sums of clusters, less the mean for every topic more or less than clusters have on average (linearised), over
    that average.
    """
    sums, rows = by_cluster(values, clusters), by_cluster(np.ones(len(values)), clusters)
    mean = values.mean() if len(values) else math.nan
    return np.asarray(mean + (sums - mean * rows) / rows.mean())


def detectable_differences(
    frame: pd.DataFrame,
    pairs: pd.DataFrame,
    group: str = "system",
    power: float = POWER,
    alpha: float = ALPHA,
    answers: Sequence[AnswerMeasureInfo] = (),
    family: str = "measure",
) -> pd.DataFrame:
    """The smallest difference that the tests of `compare_pairs` see with this power, by measure.

    `frame` and `pairs` are what `compare_pairs` takes and returns. Returns [measure, unit, difference,
    difference_median, comparisons]: of the pair that varies most, so that a difference as large as that
    between any two systems would have been seen, and of the median pair; each test at alpha / comparisons,
    the pairs of the measure, or with the `family` "all" those of all measures. Where only a sample was judged, the
    difference of the shares is that of the normal approximation, (z_a + z_b) times the standard error that the
    interval of the pair has. NaN where no difference can be seen. No rows without pairs.
    """
    check_power(power, alpha)
    units: dict[str, Unit] = {info.name: info.unit for info in answers}
    tables = topic_tables(frame, group, answers)
    sampled = len(asked(frame)) < len(frame)
    rows = []
    for name, part in pairs.groupby("measure", sort=False):
        measure = str(name)
        known = part[part["n"] > 1]
        if known.empty:
            continue
        comparisons = len(pairs if family == "all" else part)
        each = alpha / comparisons
        if measure in OF_CLASSES and sampled:
            error = (known["hi"] - known["lo"]).to_numpy(dtype=float) / 2 / _quantiles(power, 1 - LEVEL)[0]
            found = sum(_quantiles(power, each)) * error
            worst, median = float(found.max()), float(np.median(found))
        else:
            clusters = clusters_by_topic(frame, tables[measure].index)
            of_class = measure in OF_CLASSES and clusters is None
            spread, n = _spreads(tables[measure], known, of_class, clusters)
            # Ordered by the normal approximation; only two of the pairs are then solved for.
            order = np.argsort((np.sqrt(spread) if of_class else spread) / np.sqrt(n))
            solve = detectable_share if of_class else detectable_mean
            worst, median = (
                solve(float(spread[at]), int(n[at]), power, each) for at in (order[-1], order[len(order) // 2])
            )
        unit = units.get(measure, "share")
        seen = [value if unit != "share" or value <= 1 else math.nan for value in (worst, median)]
        rows.append((measure, unit, *seen, comparisons))
    columns = ["measure", "unit", "difference", "difference_median", "comparisons"]
    return pd.DataFrame(rows, columns=columns)


def alike(frame: pd.DataFrame, group: str = "system", answers: Sequence[AnswerMeasureInfo] = ()) -> dict[str, float]:
    """{measure: mean} of the measures that cannot show a difference between the groups of these topics.

    All groups have the same value on every topic, or, of shares and the IR score, a mean within 0.005 of 0 or 1.
    `frame` and the measures as in `compare_pairs`. Empty for one group.
    """
    units: dict[str, Unit] = {info.name: info.unit for info in answers}
    found = {}
    for measure, table in topic_tables(frame, group, answers).items():
        means = table.mean()
        same = bool((table.nunique(axis=1) <= 1).all())
        bounded = units.get(measure, "share") in ("share", "ratio")
        full = bounded and (means.min() >= 1 - _ROOM or means.max() <= _ROOM)
        if table.shape[1] > 1 and (same or full):
            found[measure] = float(means.mean())
    return found


def _spreads(
    table: pd.DataFrame, pairs: pd.DataFrame, of_class: bool, clusters: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """[pairs] each: standard deviation of the differences, or their mean square (of yes or no the share not 0); of how
    many topics, or clusters.
    """
    spreads, n = np.empty(len(pairs)), np.empty(len(pairs), dtype=int)
    columns = {name: table[name].to_numpy(dtype=float) for name in table.columns}
    for at, (a, b) in enumerate(zip(pairs["a"], pairs["b"], strict=True)):
        values = columns[a] - columns[b]
        there = ~np.isnan(values)
        values = values[there] if clusters is None else of_clusters(values[there], clusters[there])
        spreads[at] = (values**2).mean() if of_class else values.std(ddof=1)
        n[at] = len(values)
    return spreads, n
