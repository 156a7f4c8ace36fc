"""Compares every measure per topic with the outcome of the answer, to find which one predicts it.

AUC and Spearman's correlation are computed over topics within one system, so that a measure whose scale differs between
systems (a retriever's scores) has no disadvantage. Kendall's is of the systems' means. Topics are the unit of every
interval and test.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.metrics import IR_SCORE
from ragauge.contract.outcomes import COLUMNS
from ragauge.estimate.intervals import LEVEL, level_of_resamples, percentile_interval, topic_weights
from ragauge.estimate.outcomes import LACK, RIGHT, asked, topic_codes, units_of, weights_of, with_classes
from ragauge.estimate.pairs import holm
from ragauge.estimate.signs import tail_p
from ragauge.plugins.foresight.adds import added
from ragauge.plugins.foresight.target import JUDGE, check_target, targets

BEFORE = ("context", "ranking")  # what measures are of that are known before the LLM answers
STATISTICS = ("auc_right", "auc_lack", "spearman", "kendall")
_AUCS = {"auc_right": "_right", "auc_lack": "_lack"}  # and the column of the class
_ADDS = ("adds", "adds_lo", "adds_hi")
_BLOCK = 2_000_000  # weights at once
_FEWEST = 3  # systems that Kendall's correlation takes
_THREADS = min(4, os.cpu_count() or 1)


@dataclass(frozen=True)
class Foresight:
    """How well every measure foresees the answers of `target`.

    table: a row per measure and statistic: [measure, label, of, statistic, value, lo, hi, n, less_ir,
    less_ir_lo, less_ir_hi, adds, adds_lo, adds_hi, p, p_chance, p_best, p_holm]. n counts topics. less_ir is the value
    less that of the IR score on the same rows. adds is what the measure adds to the IR score (`added`), of auc_right
    and of measures that are known before the LLM answers. p is of the hypothesis that the measure and the IR score are
    equal, p_holm after Holm's correction over the measures of a statistic. Without an IR score these are missing.
    p_chance and p_best are of auc_right, over the measures that are known before the LLM answers. Their hypotheses:
    that a measure is no better than chance (`_p_chance`), and that none is better than it (`_p_best`). n_systems is how
    many systems there are; those without any context are left out.
    """

    table: pd.DataFrame
    target: str
    n_topics: int
    n_systems: int

    def metrics(self) -> dict[str, float]:
        """`foresight_<statistic>/<measure>` with `_lo` and `_hi`; omits undefined values."""
        rows = self.table.dropna(subset="value")
        return {
            f"foresight_{row['statistic']}/{row['measure']}{end}": float(row[column])
            for row in rows.to_dict("records")
            for column, end in (("value", ""), ("lo", "_lo"), ("hi", "_hi"))
        }


@dataclass(frozen=True)
class _Measure:
    name: str
    label: str
    of: str
    sign: int


def foresight(
    frame: pd.DataFrame,
    infos: Sequence[AnswerMeasureInfo],
    target: str | None = None,
    n_boot: int = 1000,
    seed: int = 0,
    level: float = LEVEL,
    group: str = "system",
) -> Foresight | None:
    """How well the IR score, the features and the measures of `infos` foresee the answers of each topic.

    frame: a row per topic and system, at one budget. target: "judge", whose class 5 is right and class 1 lack, or the
    name of an answer measure with values in [0, 1], whose value 1 is right, so that there is no lack. None: the judge
    where there are verdicts, else the first such measure. A measure whose lower values are better counts with its sign
    changed. Statistics:
    auc_right: P(the measure is higher for a right answer than for one that is not), equal ones by half;
    auc_lack: P(it is lower for a lack of information than for another answer), the same;
    spearman: rank correlation with being right (1 or 0), or with the target's value, the mean over systems;
    kendall: tau-b of the systems' means with their right share or mean value; of three systems or more, and
        without a test.
    Rows without a value are left out of that measure's statistics. Intervals of AUCs are Student's on
    the logit scale, with the standard deviation over resamples of topics; the others are percentiles of the resamples.
    The difference to the IR score is on the rows that have both; its test is a t test with the standard deviation of
    the resamples. None without a target, without a measure, and for one topic. ConfigError
    for a target that the frame lacks or that is no such measure.
    """
    name = _target(frame, infos, target)
    if name is None:
        return None
    rows = _rows(frame, name, group)
    measures = [m for m in _measures(infos, name) if m.name in rows and rows[m.name].notna().any()]
    if rows["_topic"].nunique() < 2 or not measures:
        return None
    table = pd.DataFrame(_over_patterns(rows, measures, n_boot, seed, level, group))
    table["p_holm"] = table.groupby("statistic", sort=False)["p"].transform(lambda p: holm(p.to_numpy(dtype=float)))
    return Foresight(table, name, rows["qid"].nunique(), rows[group].nunique())


def _target(frame: pd.DataFrame, infos: Sequence[AnswerMeasureInfo], target: str | None) -> str | None:
    """The target column of the measures; None if the frame has none."""
    check_target(target, infos)
    there = [name for name in targets(infos) if name in frame and frame[name].notna().any()]
    judged = "label" in frame and frame["label"].notna().any()
    if target is None:
        return JUDGE if judged else next(iter(there), None)
    if target == JUDGE:
        return JUDGE if judged else None
    return target if target in there else None


def _measures(infos: Sequence[AnswerMeasureInfo], target: str) -> list[_Measure]:
    own = [_Measure(c.names, c.label, "context", 1) for c in COLUMNS if c.feature]
    given = [_Measure(i.name, i.label, i.of, 1 if i.direction == "higher" else -1) for i in infos]
    # What is made of the verdict foresees nothing: it is what is foreseen.
    return [m for m in (*own, *given) if m.name != target and m.of != "verdict"]


def _rows(frame: pd.DataFrame, target: str, group: str) -> pd.DataFrame:
    """The rows with a target, of systems that gave the LLM a context, as `right`, `lack`, `worth`."""
    rows = with_classes(frame)
    rows = asked(rows) if target == JUDGE else rows
    rows = rows[rows["label" if target == JUDGE else target].notna()]
    if "n_used" in rows:
        rows = rows[rows.groupby(group)["n_used"].transform("max").gt(0)]
    if target == JUDGE:
        right = rows["label"].eq(RIGHT)
        lack, worth = rows["label"].eq(LACK), right.astype(float)
    else:
        worth = rows[target].astype(float)
        right, lack = worth.eq(1), pd.Series(False, index=rows.index)
    return rows.assign(
        _right=right, _lack=lack, _worth=worth, _weight=weights_of(rows), _topic=topic_codes(units_of(rows))[0]
    )


@dataclass(frozen=True)
class Pairs:
    """The pairs behind an AUC: their number, and the degrees of freedom of its variance over topics or clusters.

    The degrees of freedom are (sum of h)^2 / sum of h^2 - 1, at least 1. h is the part of a topic or cluster in the
    variance of the AUC of a useless measure: where m answers of a system are of the class and l are not, each of the m
    has l^2 and each of the l has m^2. Hardly more topics tell the variance than have the rarer answers (compare
    Satterthwaite 1946).
    """

    n: float
    df: float

    @classmethod
    def of(cls, rows: pd.DataFrame, flag: str, group: str) -> Pairs:
        same = rows.groupby([group, flag])[flag].transform("size").to_numpy(dtype=float)
        others = rows.groupby(group)[flag].transform("size").to_numpy(dtype=float) - same
        h = np.bincount(rows["_topic"], others**2)
        return cls(others.sum() / 2, max(float(h.sum() ** 2 / (h**2).sum()) - 1, 1.0) if h.any() else 1.0)

    def limits(self, auc: float, drawn: np.ndarray, level: float) -> tuple[float, float]:
        """The interval of an AUC from its resamples: Student's on the logit scale, hence within [0, 1].

        Half a pair is won and half a pair lost beside those that there are, so that it has a width where all are won.
        """
        from scipy.special import expit, logit, stdtrit

        known = drawn[~np.isnan(drawn)]
        if np.isnan(auc) or not len(known):
            return float("nan"), float("nan")
        middle = (auc * self.n + 0.5) / (self.n + 1)
        spread = middle * (1 - middle)
        reach = stdtrit(self.df, (1 + level) / 2) * np.sqrt(known.var() + spread / self.n) / spread
        lo, hi = expit(logit(middle) - reach), expit(logit(middle) + reach)
        return min(float(lo), auc), max(float(hi), auc)


def _over_patterns(
    rows: pd.DataFrame,
    measures: Sequence[_Measure],
    n_boot: int,
    seed: int,
    level: float,
    group: str,
) -> Iterator[dict[str, object]]:
    """The rows of the table; computes measures known for the same rows together.

    The IR score stands beside them on the rows that have both. All are of the same resamples of the topics.
    """
    n_topics, reached = int(rows["_topic"].max()) + 1, level_of_resamples(rows, level)
    known = {m.name: rows[m.name].notna().to_numpy() for m in measures}
    ir_score = next((m for m in measures if m.name == IR_SCORE.name), None)
    done: dict[str, list[dict[str, object]]] = {}
    aucs: dict[str, np.ndarray] = {}
    for pattern in {mask.tobytes(): mask for mask in known.values()}.values():
        members = [m for m in measures if np.array_equal(known[m.name], pattern)]
        both = pattern & known[IR_SCORE.name] if ir_score is not None else np.zeros(len(rows), dtype=bool)
        beside = None
        if ir_score is not None and both.any():
            beside = _statistics(rows[both], [ir_score, *members], n_topics, n_boot, seed, group)
        if beside is not None and np.array_equal(both, pattern):
            alone = beside[:, 1:]
        else:
            alone = _statistics(rows[pattern], members, n_topics, n_boot, seed, group)
        n, units = (int(rows.loc[pattern, by].nunique()) for by in ("qid", "_topic"))
        pairs = {name: Pairs.of(rows[pattern], flag, group) for name, flag in _AUCS.items()}
        for i, measure in enumerate(members):
            less = None
            if beside is not None and measure is not ir_score:
                less = beside[:, 1 + i] - beside[:, 0]
            done[measure.name] = list(_told(measure, alone[:, i], less, n, units, pairs, level, reached))
            if measure.of in BEFORE and not np.isnan(alone[0, i, 0]):
                aucs[measure.name] = alone[:, i, 0]
                if less is not None and ir_score is not None and not np.isnan(less[0, 0]):
                    columns = (ir_score.name, measure.name, measure.sign, group)
                    gain = added(rows[both], *columns, Pairs.of(rows[both], "_right", group).df, level, seed)
                    done[measure.name][0] |= dict(zip(_ADDS, gain, strict=True))
    if aucs and n_boot > 1:
        p_chance = _p_chance(rows, [m for m in measures if m.name in aucs], n_boot, seed, group)
        p_best = _p_best(np.column_stack([aucs[name] for name in p_chance]), Pairs.of(rows, "_right", group).df)
        for name, best in zip(p_chance, p_best, strict=True):
            done[name][0] |= {"p_chance": p_chance[name], "p_best": best}
    for measure in measures:
        yield from done[measure.name]


def _told(
    measure: _Measure,
    values: np.ndarray,
    less: np.ndarray | None,
    n: int,
    units: int,
    pairs: Mapping[str, Pairs],
    level: float,
    reached: float,
) -> Iterator[dict[str, object]]:
    """A row per statistic from [1 + resamples, statistics]; the first row is from the original data.

    `units`: topics, or their clusters. `reached`: the level of the percentiles that cover `level`.
    """
    from scipy.special import stdtr

    for s, statistic in enumerate(STATISTICS):
        of = pairs.get(statistic)
        if of is None:
            lo, hi = percentile_interval(values[1:, s], reached)
        else:
            lo, hi = of.limits(float(values[0, s]), values[1:, s], level)
        row: dict[str, object] = {
            "measure": measure.name, "label": measure.label, "of": measure.of, "statistic": statistic,
            "value": values[0, s], "lo": lo, "hi": hi, "n": n,
            "less_ir": np.nan, "less_ir_lo": np.nan, "less_ir_hi": np.nan, **dict.fromkeys(_ADDS, np.nan),
            "p": np.nan, "p_chance": np.nan, "p_best": np.nan,
        }  # fmt: skip
        if less is not None and not np.isnan(less[0, s]):
            low, high = percentile_interval(less[1:, s], reached)
            row |= {"less_ir": less[0, s], "less_ir_lo": low, "less_ir_hi": high}
            if statistic != "kendall" and len(less) > 2:  # of a few systems it has too few values for a test
                spread = float(np.nanstd(less[1:, s]))
                df = units - 1 if of is None else of.df
                row["p"] = float(2 * stdtr(df, -abs(less[0, s]) / spread)) if spread > 0 else 1.0
        yield row


def _p_chance(
    rows: pd.DataFrame, measures: Sequence[_Measure], n_draws: int, seed: int, group: str
) -> dict[str, float]:
    """By measure the p of being no better than chance, over all of them: among useless ones any is found in 5 %.

    A draw gives every topic the answers of another one in all systems. A measure's standing is its AUC less 0.5 over
    the standard error; p is how often the highest standing of a draw reaches its own (max-t by permutation, Westfall &
    Young 1993, exact where topics are independent). Of clusters, whole ones change places: those of equal
    size exactly, others as far as they overlap, which a standard error over clusters bears.
    """
    from ragauge.plugins.foresight._ranks import standing

    (topic, n_topics), unit = topic_codes(rows["qid"]), rows["_topic"].to_numpy()
    system = pd.factorize(rows[group])[0]
    right = np.full((n_topics, system.max() + 1), -1, dtype=np.int8)
    right[topic, system] = rows["_right"]
    units = np.empty(n_topics, dtype=np.int64)
    units[topic] = unit
    values = np.column_stack([m.sign * rows[m.name].to_numpy(dtype=float) for m in measures])
    weights = np.where(np.isnan(values.T), 0.0, rows["_weight"].to_numpy(dtype=float))
    orders, ties, systems = (np.stack(x) for x in zip(*(_sorted(v, system) for v in values.T), strict=True))
    rng = np.random.default_rng(seed)
    places = np.lexsort((rng.random(n_topics), units))
    given = np.arange(n_topics)

    def of(n: int) -> np.ndarray:
        found = np.empty((n, len(measures)))
        drawn = np.empty((n, len(rows)), dtype=np.int8)
        for draw in drawn:
            draw[:] = right[given[topic], system]
            given[places] = np.lexsort((rng.random(n_topics), rng.permutation(unit.max() + 1)[units]))
        with ThreadPoolExecutor(max_workers=_THREADS) as pool:
            parts = zip(np.array_split(drawn, _THREADS), np.array_split(found, _THREADS), strict=True)
            list(pool.map(lambda part: standing(orders, ties, systems, unit, weights, *part), parts))
        return found

    height = max(1, _BLOCK // len(rows))
    found = np.concatenate([of(min(height, n_draws + 1 - start)) for start in range(0, n_draws + 1, height)])
    highest = found[1:].max(axis=1)
    return {m.name: tail_p(highest, float(own)) for m, own in zip(measures, found[0], strict=True)}


def _p_best(values: np.ndarray, df: float) -> np.ndarray:
    """The p of each measure that no other is better, for AUCs [1 + resamples, measures] with the original rows
    first: from the largest of the normalised differences to the others (max-t), as in `estimate.best`.

    The measures with p >= 0.05 hold the best in 95 %. What was found is taken for Student's t of `df` degrees of
    freedom (`Pairs`), and brought to the scale of the normal resamples.
    """
    from scipy.special import ndtri, stdtr

    own, moved = values[0], np.nan_to_num(values[1:] - values[0])
    p_best = np.ones(len(own))
    for i in range(len(own) if len(own) > 1 else 0):
        others = np.arange(len(own)) != i
        drawn = moved[:, others] - moved[:, [i]]
        spread = np.maximum(drawn.std(axis=0), 1e-9)
        found = ndtri(stdtr(df, (own[others] - own[i]) / spread))
        p_best[i] = tail_p((drawn / spread).max(axis=1), found.max())
    return p_best


def _statistics(
    rows: pd.DataFrame, measures: Sequence[_Measure], n_topics: int, n_boot: int, seed: int, group: str
) -> np.ndarray:
    """float64 [1 + n_boot, measures, statistics]: of the rows, and of every resample of their topics."""
    from ragauge.plugins.foresight._ranks import associations  # here, since numba takes its time

    topic = rows["_topic"].to_numpy()
    system = pd.factorize(rows[group])[0].astype(np.int64)
    values = np.column_stack([m.sign * rows[m.name].to_numpy(dtype=float) for m in measures])
    worth = rows["_worth"].to_numpy(dtype=float)
    weight = rows["_weight"].to_numpy(dtype=float)
    right, lack = (rows[name].to_numpy(dtype=bool) for name in ("_right", "_lack"))
    sorted_by = [_sorted(values[:, i], system) for i in range(len(measures))]
    orders, ties, systems = (np.stack(parts) for parts in zip(*sorted_by, strict=True))
    of_target = _sorted(worth, system)

    def of(drawn: np.ndarray) -> np.ndarray:
        found = np.empty((len(drawn), len(measures), len(STATISTICS)))
        ranks = np.empty((len(drawn), len(measures), 3))
        associations(orders, ties, systems, *of_target, topic, weight, right, lack, drawn.astype(float), ranks)
        found[:, :, :3] = ranks
        found[:, :, 3] = _kendall(values, worth, topic, system, weight, n_topics, drawn.astype(float))
        return found

    own = of(np.ones((1, n_topics)))
    if n_boot == 0:
        return own
    blocks = topic_weights(n_topics, n_boot, seed, width=_BLOCK // 50)
    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        return np.concatenate([own, *pool.map(of, blocks)])


def _sorted(values: np.ndarray, system: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows by system and value; the ends of ties, and of systems."""
    order = np.lexsort((values, system))
    of_system = np.append(system[order][1:] != system[order][:-1], True)
    ends = np.append(values[order][1:] != values[order][:-1], True) | of_system
    return order, ends, of_system


def _kendall(
    values: np.ndarray,
    worth: np.ndarray,
    topic: np.ndarray,
    system: np.ndarray,
    weight: np.ndarray,
    n_topics: int,
    drawn: np.ndarray,
) -> np.ndarray:
    """float64 [resamples, measures]: tau-b of the systems' means of each measure and of the target."""
    n_systems = int(system.max()) + 1
    if n_systems < _FEWEST:
        return np.full((len(drawn), values.shape[1]), np.nan)
    cell, size = topic * n_systems + system, n_topics * n_systems

    def means(x: np.ndarray) -> np.ndarray:
        return drawn @ np.bincount(cell, weight * x, minlength=size).reshape(n_topics, n_systems)

    n = means(np.ones(len(worth)))
    with np.errstate(invalid="ignore", divide="ignore"):
        target = means(worth) / n
        found = [_tau(means(values[:, m]) / n, target) for m in range(values.shape[1])]
    return np.column_stack(found)


def _tau(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """tau-b of every row of x and y [resamples, systems]; NaN if either is constant."""
    a, b = np.triu_indices(x.shape[1], 1)
    dx, dy = (np.sign(np.round(v[:, a] - v[:, b], 12)) for v in (x, y))
    pairs = np.sqrt((dx**2).sum(axis=1) * (dy**2).sum(axis=1))
    return np.divide((dx * dy).sum(axis=1), pairs, out=np.full(len(x), np.nan), where=pairs > 0)
