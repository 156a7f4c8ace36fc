"""Curves over budgets: simultaneous bands and tests, and the smallest budget that is as good as the best.

How the budgets vary together over topics is kept: ten budgets of one retriever are far from ten independent
looks. docs/method.md says what is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri  # scipy.stats takes half a second to import

from ragauge.contract.errors import ConfigError, DataError
from ragauge.estimate.best import topic_weights_of
from ragauge.estimate.intervals import LEVEL, cluster_variance, effective_topics, wilson_interval
from ragauge.estimate.outcomes import by_cluster, check_outcomes, clusters_by_topic
from ragauge.estimate.pairs import OF_CLASSES, holm, topic_tables
from ragauge.estimate.signs import all_flipped, tail_p

_DRAWS = 10_000  # normal vectors behind a critical value
MARGIN = 0.01  # of the IR score or of a share (one point) that a smaller budget may cost
CURVES = ("ir_score", "correct")


@dataclass(frozen=True)
class Budgets:
    """The curves of a sweep over its budgets, by measure (`ir_score`, `correct`).

    `bands` has a row per measure, system and budget (see `curve_band`). `smallest` has one per measure and system (see
    `smallest_budget`). `tests` has one per measure, pair of systems and budget that both have (see `compare_curves`).
    `n_budgets` is the largest number of budgets of a system.
    """

    bands: pd.DataFrame
    smallest: pd.DataFrame
    tests: pd.DataFrame
    n_budgets: int
    margin: float
    level: float = LEVEL

    def band_of(self, measure: str) -> dict[str, dict[int, tuple[float, float]]]:
        """{system: {n_tokens: (lower, upper)}} of the bands of a measure."""
        found: dict[str, dict[int, tuple[float, float]]] = {}
        for row in self.bands[self.bands["measure"] == measure].to_dict("records"):
            found.setdefault(row["system"], {})[int(row["n_tokens"])] = (row["band_lo"], row["band_hi"])
        return found

    def most_different(self) -> pd.DataFrame:
        """The row of `tests` with the largest difference, per measure and pair, with `p_holm` over the pairs.

        p_holm corrects `p_all_budgets`, so that neither the choice of the budget nor that of the pair
        is looking too often.
        """
        if self.tests.empty:
            return self.tests.assign(p_holm=pd.Series(dtype=float))
        at = self.tests.groupby(["measure", "a", "b"], sort=False)["p_all_budgets"].idxmin()
        rows = self.tests.loc[at]
        parts = [part.assign(p_holm=holm(part["p_all_budgets"].to_numpy())) for _, part in
                 rows.groupby("measure", sort=False)]  # fmt: skip
        return pd.concat(parts, ignore_index=True)


def budgets(frame: pd.DataFrame, margin: float = MARGIN, level: float = LEVEL, seed: int = 0) -> Budgets | None:
    """The curves of the outcomes of a sweep (columns system, n_tokens, qid, ir_score, label).

    None where no system has two budgets, and where nothing is known at two. Right answers are there for
    systems that were judged at two budgets; where a sample of the topics was judged, they are about the
    judged topics, weighted by stratum.
    """
    check_outcomes(frame, keys=("qid", "system", "n_tokens"), may_lack=("ir_score",))
    if frame.empty or frame.groupby("system")["n_tokens"].nunique().max() < 2:
        return None
    bands, smallest, tests, most = [], [], [], 0
    found_curves = _curves(frame)
    if not found_curves:
        return None
    for measure, curves in found_curves.items():
        of_class = measure in OF_CLASSES
        weights = topic_weights_of(frame, next(iter(curves.values())).index) if of_class else None
        for system, values in curves.items():
            known = _known(values)
            weight = None if weights is None else weights[known.index].to_numpy()
            clusters = clusters_by_topic(frame, known.index)
            bands.append(curve_band(known, weight, level, seed, clusters).assign(measure=measure, system=system))
            most = max(most, values.shape[1])
            smallest.append(
                {
                    "measure": measure,
                    "system": system,
                    "best_n_tokens": known.columns[int(np.argmax(_means(known, weight)))],
                    "smallest_n_tokens": smallest_budget(known, margin, weight, level, seed, clusters),
                    "smallest_n_tokens_seen": _smallest_seen(_means(known, weight), margin),
                    "n": len(known),
                }
            )
        topics = pd.Index(sorted(set().union(*(curve.index for curve in curves.values()))))
        of = clusters_by_topic(frame, topics)
        by_qid = None if of is None else pd.Series(of, topics)
        tests.append(compare_curves(curves, weights, level, seed, by_qid).assign(measure=measure))
    first = ["measure", "system", "n_tokens"]
    found = pd.concat(bands, ignore_index=True)
    pairs = pd.concat([part for part in tests if len(part)] or tests, ignore_index=True)
    return Budgets(
        found[[*first, *(c for c in found if c not in first)]],
        pd.DataFrame(smallest).astype({"smallest_n_tokens": "Int64"}),
        pairs[["measure", *(c for c in pairs if c != "measure")]],
        most,
        margin,
        level,
    )


def _curves(frame: pd.DataFrame) -> dict[str, dict[str, pd.DataFrame]]:
    """{measure: {system: [qid x n_tokens]}} of the systems with two budgets, budgets in rising order."""
    found: dict[str, dict[str, pd.DataFrame]] = {}
    by_job = frame.groupby(["system", "n_tokens"], sort=True)
    jobs = by_job["label"].count().reset_index()
    tables = topic_tables(frame.assign(job=by_job.ngroup()), "job")
    for measure in (m for m in CURVES if m in tables):
        columns: dict[str, dict[int, pd.Series]] = {}
        for job, (system, n, labels) in enumerate(jobs.itertuples(index=False)):
            if measure not in OF_CLASSES or labels:
                columns.setdefault(str(system), {})[int(n)] = tables[measure][job]
        curves = {system: pd.DataFrame(of) for system, of in columns.items() if len(of) > 1}
        if curves:
            found[measure] = curves
    return found


def _known(values: pd.DataFrame) -> pd.DataFrame:
    """The topics with a value at every budget."""
    return values.dropna(axis="index")


def _checked(values: pd.DataFrame, weights: np.ndarray | None, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Values and weights as arrays; errors for values outside [0, 1] and for a level outside (0, 1)."""
    if not 0 < level < 1:
        raise ConfigError(f"level {level}: allowed is a number between 0 and 1, both excluded")
    x = values.to_numpy(dtype=float)
    if not ((x >= 0) & (x <= 1)).all():
        raise DataError("a curve's values: allowed are numbers in [0, 1] for every topic and budget")
    return x, np.ones(len(x)) if weights is None else np.asarray(weights, dtype=float)


def _means(values: pd.DataFrame, weights: np.ndarray | None) -> pd.Series:
    means = np.average(values, axis=0, weights=weights) if len(values) else np.nan
    return pd.Series(means, index=values.columns, dtype=float)


def _critical(deviations: np.ndarray, level: float, seed: int, sides: int = 2) -> float:
    """The `level` quantile of the largest |t| (t if one-sided) of Student's variables, one per budget.

    They have as many degrees of freedom as there are topics less one, and the correlations of `deviations` [topics,
    budgets]. A budget without deviations is taken to be independent of the others. It is at least the z of one budget
    alone.
    """
    squares = (deviations**2).sum(axis=0)
    norms = np.sqrt(np.where(squares > 1e-12, squares, np.inf))
    correlations = (deviations / norms).T @ (deviations / norms)
    np.fill_diagonal(correlations, 1.0)
    values, vectors = np.linalg.eigh(correlations)
    rng, freedom = np.random.default_rng(seed), max(len(deviations) - 1, 1)
    draws = rng.standard_normal((_DRAWS, len(values)))
    draws /= np.sqrt(rng.chisquare(freedom, (_DRAWS, 1)) / freedom)
    t = draws @ (vectors * np.sqrt(np.maximum(values, 0))).T
    largest = (np.abs(t) if sides == 2 else t).max(axis=1)
    return max(float(-ndtri((1 - level) / sides)), float(np.quantile(largest, level)))


def curve_band(
    values: pd.DataFrame,
    weights: np.ndarray | None = None,
    level: float = LEVEL,
    seed: int = 0,
    clusters: np.ndarray | None = None,
) -> pd.DataFrame:
    """Means over topics by budget with intervals: [n_tokens, value, lo, hi, band_lo, band_hi, n].

    `values` is [topics x budgets] in [0, 1] without NaN. lo and hi hold at one budget, Wilson's interval at
    the effective number of topics; the band holds at all budgets at once. It is Wilson's interval at the critical value
    c of the plug-in sup-t band (Montiel Olea & Plagborg-Møller 2019): the `level` quantile of the largest |t| of
    variables with the budgets' correlations. With `clusters` [topics] these are what varies. NaN with fewer than two
    topics or clusters.
    """
    x, w = _checked(values, weights, level)
    n, means = len(x), _means(values, w)
    frame = pd.DataFrame({"n_tokens": list(values.columns), "value": means.to_numpy()})
    nothing = (float("nan"), float("nan"))
    simple = simultaneous = [nothing] * len(frame)
    sums, rows = by_cluster(w[:, None] * x, clusters), by_cluster(w[:, None], clusters)
    if len(sums) > 1:
        c = _critical(sums - rows * means.to_numpy(), level, seed)
        single, sizes = (
            [effective_topics(column, rows[:, 0], None, n, of) for column in sums.T] for of in (level, None)
        )
        outer = 1 - 2 * float(ndtr(-c))
        simple = [_wilson(m, size, level) for m, size in zip(means, single, strict=True)]
        simultaneous = [_wilson(m, size, outer) for m, size in zip(means, sizes, strict=True)]
    frame[["lo", "hi"]] = simple
    frame[["band_lo", "band_hi"]] = simultaneous
    return frame.assign(n=n)


def _wilson(mean: float, n: float, level: float) -> tuple[float, float]:
    lo, hi = wilson_interval(min(mean, 1.0), n, level)
    return min(lo, mean), max(hi, mean)


def _smallest_seen(means: pd.Series, margin: float) -> int:
    """The smallest budget with an observed mean at most `margin` under the highest."""
    return int(means.index[means >= means.max() - margin - 1e-12].min())


def smallest_budget(
    values: pd.DataFrame,
    margin: float = MARGIN,
    weights: np.ndarray | None = None,
    level: float = LEVEL,
    seed: int = 0,
    clusters: np.ndarray | None = None,
) -> int | None:
    """The smallest budget that is, with confidence `level`, at most `margin` worse than the best one.

    `values` is [topics x budgets] in [0, 1]; None where no budget is known to be that good. A budget N counts where for
    every other budget M the upper limit of mean(M) - mean(N) is below the margin. These are the lower limits of
    multiple comparisons with the best (Hsu 1981): a budget picked this way is truly within the margin with that
    confidence, however many there are. With c the quantile of the largest t of all N (sup-t), the limit is mean + c^2 /
    2n + c root(variance / n + (c / 2n)^2), as Wilson's for a share. So twelve topics without a difference do not show
    that it is below 0.01. Where a larger budget is worse in no topic, as an IR score is made, the largest alone is M.
    """
    x, w = _checked(values, weights, level)
    if not 0 < margin < 1:
        raise ConfigError(f"margin {margin}: allowed is a number between 0 and 1, both excluded")
    n_units = len(x) if clusters is None else len(np.unique(clusters))
    if n_units < 2:
        return None
    rising = bool((np.diff(x, axis=1) >= -1e-9).all()) and not np.isin(x, (0, 1)).all()
    within = np.ones(x.shape[1], dtype=bool)
    size = w.sum() ** 2 / (w**2).sum() / np.sqrt(len(x) / n_units)
    for best in [x.shape[1] - 1] if rising else range(x.shape[1]):
        differences = x[:, [best]] - x
        mean = np.average(differences, axis=0, weights=w)
        deviations = w[:, None] * (differences - mean)
        c = _critical(by_cluster(np.delete(deviations, best, axis=1), clusters), level, seed, sides=1)
        variance = cluster_variance(deviations / w.sum(), clusters)
        upper = mean + c**2 / (2 * size) + c * np.sqrt(variance + (c / (2 * size)) ** 2)
        upper[best] = 0
        within &= upper < margin
    return int(values.columns[within].min()) if within.any() else None


def compare_curves(
    curves: Mapping[str, pd.DataFrame],
    weights: pd.Series | None = None,
    level: float = LEVEL,
    seed: int = 0,
    clusters: pd.Series | None = None,
) -> pd.DataFrame:
    """Every pair of systems at every common budget, on the common topics there.

    `curves` are [qid x n_tokens], `weights` and `clusters`, numbered, by qid. Returns [a, b, n_tokens, difference,
    lo, hi, p, p_all_budgets, n]: the mean of a less b; p of a sign-flip test at this budget alone. p_all_budgets is
    that of the largest |t| over all budgets of the pair (max-t, Westfall & Young 1993), which holds for a budget that
    was chosen after looking at the curve. lo and hi hold at all budgets of the pair at once.
    """
    topics = pd.Index(sorted(set().union(*(curve.index for curve in curves.values()))))
    w = np.ones(len(topics)) if weights is None else weights.reindex(topics).fillna(1.0).to_numpy()
    tables = {system: curve.reindex(topics) * w[:, None] for system, curve in curves.items()}
    drawn, of = None, None if clusters is None else clusters[topics].to_numpy()
    if not any(table.isna().any(axis=None) for table in tables.values()):
        drawn = {
            s: pd.DataFrame(all_flipped(by_cluster(t.to_numpy(), of), seed), columns=t.columns)
            for s, t in tables.items()
        }
    columns = ["a", "b", "n_tokens", "difference", "lo", "hi", "p", "p_all_budgets", "n"]
    parts = [pd.DataFrame(columns=columns)]
    for a, b in combinations(tables, 2):
        shared = [n for n in tables[a].columns if n in tables[b].columns]
        if shared:
            differences = (tables[a][shared] - tables[b][shared]).to_numpy(dtype=float)
            known = ~np.isnan(differences)
            values = by_cluster(np.nan_to_num(differences), of)
            sums = all_flipped(values, seed) if drawn is None else (drawn[a][shared] - drawn[b][shared])
            of_units = by_cluster(w[:, None] * known, of)
            there = of_units.any(axis=1)
            per = known.any(axis=1).sum() / max(there.sum(), 1)
            found = _over_budgets(values[there], of_units[there], np.asarray(sums), per, level, seed)
            parts.append(found.assign(a=a, b=b, n_tokens=shared, n=known.sum(axis=0)))
    some = [part for part in parts if len(part)]
    return pd.concat(some or parts, ignore_index=True)[columns]


def _over_budgets(
    values: np.ndarray, weights: np.ndarray, sums: np.ndarray, per: float, level: float, seed: int
) -> pd.DataFrame:
    """The tests of one pair: `values` are its weighted differences, `sums` the same under random signs.

    A row of each is a topic, or a cluster of `per` topics on average.
    """
    norms = np.sqrt((values**2).sum(axis=0))
    scale = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 1e-6)
    drawn, seen = np.abs(sums * scale), np.abs(values.sum(axis=0) * scale)
    largest, total = drawn.max(axis=1), weights.sum(axis=0)
    nothing = np.full(len(total), np.nan)
    mean = np.divide(values.sum(axis=0), total, out=nothing.copy(), where=total > 0)
    deviations = values - weights * np.nan_to_num(mean)
    squares = (deviations**2).sum(axis=0)
    c = _critical(deviations, level, seed)
    unseen = c**2 / 4 * (weights**2).sum(axis=0) / np.maximum((weights > 0).sum(axis=0), 1) / per
    several = (weights > 0).sum(axis=0) > 1
    reach = np.divide(c * np.sqrt(squares + unseen), total, out=nothing, where=several)
    return pd.DataFrame(
        {
            "difference": mean,
            "lo": np.maximum(mean - reach, -1),
            "hi": np.minimum(mean + reach, 1),
            "p": [tail_p(drawn[:, i], value) for i, value in enumerate(seen)],
            "p_all_budgets": [tail_p(largest, value) for value in seen],
        }
    )
