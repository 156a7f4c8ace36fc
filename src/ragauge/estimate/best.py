"""The confidence set of the best system, and the expected optimism of the top score.

A system is tested against the best of the others, topic by topic (max-t). Its p is the probability, under random signs
of the topics, that the largest normalised difference to any other system is as high as the one seen. Those with p of at
least 5 % are a 95 % confidence set of the best system (multiple comparisons with the best, Hsu 1981). docs/method.md
says what is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate.outcomes import asked, by_cluster, clusters_by_topic, compared_by_class, weights_of
from ragauge.estimate.pairs import OF_CLASSES, topic_tables
from ragauge.estimate.signs import FLIPS, all_flipped, flipped_sums, tail_p

ALPHA = 0.05
_SAME = 1e-12  # sum of squared differences, of values up to 1, below which two systems are equal


@dataclass(frozen=True)
class BestSystems:
    """The confidence sets of the best systems, by measure.

    `table` has a row per measure and system: [measure, the group, p_best, p_all_best, in_best_set], the
    first being those of `best_systems`, the last p_best >= alpha. `optimism` is that of `top_optimism` by
    measure.
    """

    table: pd.DataFrame
    optimism: dict[str, float]
    group: str

    def marks(self, measure: str) -> dict[str, bool]:
        """Whether each system is in the set; {} for a measure without values."""
        rows = self.table[self.table["measure"] == measure]
        return dict(zip(rows[self.group], rows["in_best_set"].astype(bool), strict=True))

    def optimism_at_top(self, measures: Sequence[str]) -> dict[str, float]:
        """`top_optimism` by measure, for measures with two or more ranked systems."""
        several = self.table["measure"].value_counts() > 1
        known = {m: value for m, value in self.optimism.items() if value == value and several[m]}
        return {measure: known[measure] for measure in measures if measure in known}

    def metrics(self) -> dict[str, float]:
        """`best_set_size_<measure>`, and `top_optimism_<measure>` for two or more systems and topics."""
        sizes = self.table.groupby("measure", sort=False)["in_best_set"].sum()
        values = {f"best_set_size_{measure}": int(size) for measure, size in sizes.items()}
        known = self.optimism_at_top(list(self.optimism))
        return values | {f"top_optimism_{measure}": value for measure, value in known.items()}


def best_sets(
    frame: pd.DataFrame,
    group: str = "retriever",
    seed: int = 0,
    alpha: float = ALPHA,
    answers: Sequence[AnswerMeasureInfo] = (),
) -> BestSystems:
    """The confidence sets of the best groups by IR score, right answers, hallucinations and answer measures.

    `frame` has one row per topic and group (one n_tokens). The lowest is the best for hallucinations, and for answer
    measures whose direction is lower. A missing verdict counts against the group in both measures of classes: as not
    right, and as a hallucination. Groups with verdicts on less than half of their answers (`compared_by_class`) have
    neither. Where a sample of the topics was judged, those of classes are about the judged topics, weighted by stratum.
    """
    if frame.empty:
        raise DataError("outcomes: no rows, so there is no best system")
    if not 0 < alpha < 1:
        raise ConfigError(f"alpha {alpha}: allowed is a number between 0 and 1, both excluded")
    lowest = {"hallucination", *(info.name for info in answers if info.direction == "lower")}
    tables = topic_tables(frame, group, answers)
    compared, unknown = compared_by_class(frame, group), frame["label"].isna()
    missing = frame.assign(missing=unknown).pivot(index="qid", columns=group, values="missing").eq(True)
    parts, optimism = [], {}
    for measure, values in tables.items():
        of_class = measure in OF_CLASSES
        if of_class:
            values = values.loc[:, values.columns.isin(compared)]
        if measure == "hallucination":
            asked_about = tables["correct"].reindex_like(values).notna()
            values = values.mask(missing.reindex_like(values) & asked_about, 1.0)
        values = values.dropna(axis="index", how="all").dropna(axis="columns", how="all")
        if values.empty:  # of classes, where no group has verdicts enough
            continue
        weights = topic_weights_of(frame, values.index).to_numpy() if of_class else None
        how = (measure in lowest, weights, seed, clusters_by_topic(frame, values.index))
        found = best_systems(values, *how).rename_axis(group).reset_index()
        parts.append(found.assign(measure=measure, in_best_set=found["p_best"] >= alpha))
        optimism[measure] = top_optimism(values, *how)
    columns = ["measure", group, "p_best", "p_all_best", "in_best_set"]
    table = pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)
    return BestSystems(table, optimism, group)


def topic_weights_of(frame: pd.DataFrame, qids: pd.Index) -> pd.Series:
    """The weight of every topic by qid, from its judged rows (`weights_of`); 1 without any."""
    rows = asked(frame)
    by_topic = pd.Series(weights_of(rows), index=rows["qid"].to_numpy()).groupby(level=0).mean()
    return by_topic.reindex(qids).fillna(1.0)


def best_systems(
    values: pd.DataFrame,
    lowest: bool = False,
    weights: np.ndarray | None = None,
    seed: int = 0,
    clusters: np.ndarray | None = None,
) -> pd.DataFrame:
    """Per system, p of being the best, and of being among all the best: [p_best, p_all_best].

    `values` is [topics x systems], NaN where a system lacks a topic (two systems are compared on the topics that both
    have). The best has the highest mean, or the `lowest`. `weights` are of the topics.

    p_best: of the hypothesis that no other system is better (Hsu 1981), from the largest of the one-sided statistics
    against each other system. The systems with p_best >= alpha hold the best with 1 - alpha; of several equally good
    ones, each. p_all_best: those with p_all_best >= alpha hold all equally good ones at once with 1 - alpha (model
    confidence set with the range statistic, Hansen, Lunde & Nason 2011), a larger set.

    A statistic is the sum of the differences over the root of the sum of their squares. Its null distribution comes
    from 1,999 random signs of the topics, the same for all pairs, the observed ones counted among them. With `clusters`
    [topics], numbered, sums over clusters take the place of the topics' differences.
    """
    x = _weighted(values, weights) * (-1 if lowest else 1)
    ahead, scale = _statistics(x, clusters)
    drawn = _drawn(x, clusters, seed)
    n = x.shape[1]
    p_best = np.ones(n)
    if n > 1:
        for i in range(n):
            others = np.arange(n) != i
            largest = (-drawn(i) * scale[i])[:, others].max(axis=1)
            p_best[i] = tail_p(largest, ahead[i, others].max())
    p_all = _model_confidence_p(ahead, scale, drawn)
    return pd.DataFrame({"p_best": p_best, "p_all_best": p_all}, index=values.columns)


def top_optimism(
    values: pd.DataFrame,
    lowest: bool = False,
    weights: np.ndarray | None = None,
    seed: int = 0,
    clusters: np.ndarray | None = None,
) -> float:
    """Expected excess of the best system's score over its true value, >= 0.

    The best in a random half of the topics is scored on the other half. Its mean in the half that chose it less that in
    the other, averaged over 1,999 halvings, is without bias for half as many topics. It is divided by the root of 2,
    which is exact where systems are equally good and too much where one leads. `values`, `weights` and `clusters` are
    those of `best_systems`; clusters are halved as wholes. NaN with fewer than two topics or clusters, 0 for one
    system.
    """
    if min(len(values), len(values if clusters is None else np.unique(clusters))) < 2 or not values.shape[1]:
        return float("nan")
    x = _weighted(values, weights)
    weight = np.ones(len(x)) if weights is None else weights
    known = (~np.isnan(x)) * weight[:, None]
    both = by_cluster(np.hstack([np.nan_to_num(x), known]), clusters)
    total, found = both.sum(axis=0), []
    for drawn in flipped_sums(both, FLIPS, seed):
        halves = []
        for sign in (1, -1):
            sums, size = np.hsplit((total + sign * drawn) / 2, 2)
            halves.append(np.divide(sums, size, out=np.full_like(sums, np.nan), where=size > 1e-9))
        first, second = (half[~np.isnan(halves[0] + halves[1]).any(axis=1)] for half in halves)
        rows = np.arange(len(first))
        for chosen, other in ((first, second), (second, first)):
            top = chosen.argmin(axis=1) if lowest else chosen.argmax(axis=1)
            found.append((chosen[rows, top] - other[rows, top]) * (-1 if lowest else 1))
    every = np.concatenate(found)
    return float(max(every.mean(), 0.0) / np.sqrt(2)) if len(every) else float("nan")


def _weighted(values: pd.DataFrame, weights: np.ndarray | None) -> np.ndarray:
    x = values.to_numpy(dtype=float)
    if np.isinf(x).any():
        raise DataError("a system's value of a topic is infinite; allowed are finite numbers and nothing")
    if weights is None:
        return x
    if len(weights) != len(x) or not (np.isfinite(weights) & (weights > 0)).all():
        raise DataError(f"weights of {len(x)} topics: allowed are as many finite numbers above 0")
    return x * weights[:, None]


def _statistics(x: np.ndarray, clusters: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Normalised lead of j over i, [systems, systems], and the scale 1 / root of the sum of squares.

    Where two systems do not differ, the scale and the statistic are 0.
    """
    n = x.shape[1]
    ahead, scale = np.zeros((n, n)), np.zeros((n, n))
    least = _SAME * max(1.0, float(np.nanmax(np.abs(x), initial=0.0))) ** 2
    for i in range(n):
        differences = by_cluster(np.nan_to_num(x - x[:, [i]]), clusters)
        squares = (differences**2).sum(axis=0)
        scale[i] = np.divide(1, np.sqrt(squares), out=np.zeros(n), where=squares > least)
        ahead[i] = differences.sum(axis=0) * scale[i]
    return ahead, scale


def _drawn(x: np.ndarray, clusters: np.ndarray | None, seed: int) -> Callable[[int], np.ndarray]:
    """A function of i: flipped sums of i's values minus those of each system, [flips, systems]."""
    if not np.isnan(x).any():
        # Less the topic's mean, which no difference has, so that sums of equal systems are equal.
        sums = all_flipped(by_cluster(x - x.mean(axis=1, keepdims=True), clusters), seed)
        return lambda i: sums[:, [i]] - sums
    each = [all_flipped(by_cluster(np.nan_to_num(x[:, [i]] - x), clusters), seed) for i in range(x.shape[1])]
    return lambda i: each[i]


def _model_confidence_p(ahead: np.ndarray, scale: np.ndarray, drawn: Callable[[int], np.ndarray]) -> np.ndarray:
    """p of the model confidence set, float64 [systems].

    Systems leave one by one, first the one furthest behind any other that is left. The p of a step is that of the
    largest difference among those that are left, and a system's p the highest up to its step.
    """
    left, order = list(range(len(ahead))), []
    while len(left) > 1:
        behind = ahead[np.ix_(left, left)].max(axis=1)
        at = int(behind.argmax())
        order.append((left.pop(at), float(behind[at])))
    p = np.ones(len(ahead))
    largest = np.zeros(FLIPS)
    for system, observed in reversed(order):  # from the last pair on: the largest of a set grows with it
        others = np.abs(drawn(system)[:, left] * scale[system, left])
        largest = np.maximum(largest, others.max(axis=1))
        p[system] = tail_p(largest, observed)
        left.append(system)
    highest = 0.0
    for system, _ in order:
        highest = p[system] = max(highest, p[system])
    return p
