"""Power analysis: topics needed to detect a difference, and the difference that n topics detect.

The tests are those of `compare_pairs`: the sign-flip test of mean differences, whose power is that of the
paired t-test, and McNemar's exact test. Both are planned at alpha over the number of comparisons, which is
what Holm's correction asks of the smallest p. Sources and assumptions: docs/method.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from ragauge.contract.checks import is_number, require, require_fraction, require_number
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate.intervals import LEVEL
from ragauge.estimate.outcomes import asked, by_cluster, clusters_by_topic
from ragauge.estimate.pairs import OF_CLASSES, SIGN_FLIPS, topic_tables

POWER, ALPHA = 0.8, 0.05
Unit = Literal["share", "ratio", "signed", "score"]
_ROOM = 0.005  # between a mean and 0 or 1 within which no difference can show


def check_power(power: object, alpha: object) -> None:
    """ConfigError unless 0 < alpha < power < 1."""
    require_fraction("alpha", alpha)
    ok = is_number(power) and alpha < power < 1  # type: ignore[operator]
    require("power", power, ok, f"numbers above alpha ({alpha:g}) and below 1")


def check_difference(difference: object, unit: Unit = "share") -> None:
    """ConfigError unless the difference is above 0, and for shares and the IR score at most 1."""
    require_number("difference", difference, 0, {"score": math.inf, "signed": 2}.get(unit, 1), above=True)


# --- mean differences: the sign-flip test -------------------------------------------------------------------


def topics_for_mean(sd: float, difference: float, power: float = POWER, alpha: float = ALPHA) -> float:
    """Topics on which the two-sided sign-flip test of a mean difference has this power.

    `sd` is the standard deviation of the topics' differences. n = (z_a + z_b)^2 sd^2 / difference^2 + z_a^2 / 2, where
    z_a and z_b are the normal quantiles of 1 - alpha/2 and of the power. It is that of the paired t-test to within a
    topic (Guenther 1981), and at least as many as can reach p < alpha at all. inf where the test
    cannot: its random flips show no p of less than 0.0001.
    """
    check_power(power, alpha)
    check_difference(difference, "score")
    if alpha <= 1 / (SIGN_FLIPS + 1):
        return math.inf
    z_a, z_b = quantiles(power, alpha)
    # All of n differences on one side have p = 2^(1-n).
    least = math.floor(1 - math.log2(alpha)) + 1
    return float(max(math.ceil(((z_a + z_b) * sd / difference) ** 2 + z_a**2 / 2), least))


def detectable_mean(sd: float, n: int, power: float = POWER, alpha: float = ALPHA) -> float:
    """The difference for which `topics_for_mean` is n; NaN if n topics can detect none."""
    check_power(power, alpha)
    z_a, z_b = quantiles(power, alpha)
    least = math.floor(1 - math.log2(alpha)) + 1
    if n < least or n <= z_a**2 / 2 or alpha <= 1 / (SIGN_FLIPS + 1):
        return math.nan
    return (z_a + z_b) * sd / math.sqrt(n - z_a**2 / 2)


def quantiles(power: float, alpha: float) -> tuple[float, float]:
    """The normal quantiles of 1 - alpha/2 and of the power."""
    from scipy.stats import norm

    return float(norm.isf(alpha / 2)), float(norm.ppf(power))


# --- differences of shares: McNemar's exact test ------------------------------------------------------------


def mcnemar_power(n: int, discordant: float, difference: float, alpha: float = ALPHA) -> float:
    """The power of McNemar's exact test at alpha on n topics.

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


def detectable_share(discordant: float, n: int, power: float = POWER, alpha: float = ALPHA) -> float:
    """The smallest difference of two shares that n topics detect with this power; NaN without any.

    For a difference above `discordant`, the discordant share is the difference.
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


# --- all pairs of a finished sweep ------------------------------------------------------------


def of_clusters(values: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Cluster values with the mean and variance of `values` [topics] over these clusters, float64 [clusters].

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
    """The smallest difference that `compare_pairs` detects with this power, by measure.

    `frame` and `pairs` are what `compare_pairs` takes and returns. Returns [measure, unit, difference,
    difference_median, comparisons]. difference: that of the pair that varies most, so that a difference as large as
    that between any two systems would have been seen. difference_median: that of the median pair. Each test is at alpha
    /
    comparisons: the pairs of the measure, or with the `family` "all" those of all measures. Where only a sample was
    judged, the difference of the shares is that of the normal approximation, (z_a + z_b) times the standard error that
    the interval of the pair has. NaN where no difference can be seen. No rows without pairs.
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
            error = (known["hi"] - known["lo"]).to_numpy(dtype=float) / 2 / quantiles(power, 1 - LEVEL)[0]
            found = sum(quantiles(power, each)) * error
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
    """{measure: mean} of the measures that cannot distinguish the groups on these topics.

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
    """Per pair: standard deviation (or mean square, for yes-or-no the share not 0) of differences, and sample size."""
    spreads, n = np.empty(len(pairs)), np.empty(len(pairs), dtype=int)
    columns = {name: table[name].to_numpy(dtype=float) for name in table.columns}
    for at, (a, b) in enumerate(zip(pairs["a"], pairs["b"], strict=True)):
        values = columns[a] - columns[b]
        there = ~np.isnan(values)
        values = values[there] if clusters is None else of_clusters(values[there], clusters[there])
        spreads[at] = (values**2).mean() if of_class else values.std(ddof=1)
        n[at] = len(values)
    return spreads, n
