"""Bootstrap intervals over topics: the topic, not the row, is what gets drawn.

A percentile interval of the resampled statistic (Efron 1979; Efron & Tibshirani 1993, ch. 13). All rows of a
drawn topic come along, so that five retrievers on one topic do not pass for five observations.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.estimate.outcomes import topic_codes

LEVEL = 0.95
_BLOCK = 4_000_000  # elements of one block of replicates: bounds the memory


@dataclass(frozen=True)
class Estimate:
    """A number with its interval at `level`, from `n` topics; lo and hi are NaN where there is none."""

    value: float
    lo: float
    hi: float
    n: int
    level: float = LEVEL


def topic_weights(n_topics: int, n_boot: int, seed: int, width: int = 1) -> Iterator[np.ndarray]:
    """Yields int32 [replicates, n_topics] blocks, n_boot rows in all: how often each topic was drawn.

    Each row sums to n_topics. The rows depend on the seed alone, not on `width`, the elements per replicate
    that the caller builds from a block (it sets the height of a block, so that the memory stays bounded).
    """
    rng = np.random.default_rng(seed)
    height = max(1, _BLOCK // max(n_topics, width, 1))
    for start in range(0, n_boot, height):
        rows = min(height, n_boot - start)
        drawn = rng.integers(n_topics, size=(rows, n_topics))
        drawn += np.arange(rows)[:, None] * n_topics
        yield np.bincount(drawn.ravel(), minlength=rows * n_topics).reshape(rows, n_topics).astype(np.int32)


def percentile_interval(replicates: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """The central `level` of the replicates; those that are NaN (undefined in a resample) are left out."""
    known = replicates[~np.isnan(replicates)]
    if not len(known):
        return float("nan"), float("nan")
    lo, hi = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(lo), float(hi)


def mean_replicates(sums: np.ndarray, rows: np.ndarray, n_boot: int = 1000, seed: int = 0) -> np.ndarray:
    """float64 [n_boot, columns]: means over all rows in resamples of topics; NaN where none was drawn.

    Of each topic a resample only needs the sum and the number of rows: `sums` and `rows` are [topics,
    columns].
    """
    blocks = [np.empty((0, sums.shape[1]))]
    for drawn in topic_weights(len(sums), n_boot, seed):
        weights = drawn.astype(float)
        total, n = weights @ sums, weights @ rows
        blocks.append(np.divide(total, n, out=np.full_like(total, np.nan), where=n > 0))
    return np.vstack(blocks)


def bootstrap_mean(
    values: np.ndarray | pd.Series,
    topics: np.ndarray | pd.Series | None = None,
    n_boot: int = 1000,
    seed: int = 0,
    level: float = LEVEL,
) -> Estimate:
    """The mean of all rows with its percentile interval over topics.

    `topics` names the topic of every row; without it every row is a topic of its own. With fewer than two
    topics lo and hi are NaN; without rows the value is NaN, too.
    """
    x = np.asarray(values, dtype=float)
    codes, n = (np.arange(len(x)), len(x)) if topics is None else topic_codes(topics)
    value = float(x.mean()) if n else float("nan")
    if n < 2:
        return Estimate(value, float("nan"), float("nan"), n, level)
    sums, rows = np.bincount(codes, x, minlength=n), np.bincount(codes, minlength=n).astype(float)
    replicates = mean_replicates(sums[:, None], rows[:, None], n_boot, seed)
    return Estimate(value, *percentile_interval(replicates[:, 0], level), n, level)


def bootstrap_means(
    table: pd.DataFrame, n_boot: int = 1000, seed: int = 0, level: float = LEVEL
) -> dict[Hashable, Estimate]:
    """The mean of every column with its percentile interval over topics, from one set of resamples.

    `table` has a row per topic and NaN where a topic has no value in a column; `n` of an estimate counts its
    values. With fewer than two of them lo and hi are NaN.
    """
    values = table.to_numpy(dtype=float)
    known = ~np.isnan(values)
    sums = np.where(known, values, 0.0)
    n = known.sum(axis=0)
    replicates = mean_replicates(sums, known.astype(float), n_boot, seed) if len(table) else None
    nothing = (float("nan"), float("nan"))
    return {
        column: Estimate(
            float(sums[:, i].sum() / n[i]) if n[i] else float("nan"),
            *(
                percentile_interval(replicates[:, i], level)
                if replicates is not None and n[i] > 1
                else nothing
            ),
            int(n[i]),
            level,
        )
        for i, column in enumerate(table.columns)
    }


def topic_bootstrap(
    frame: pd.DataFrame,
    statistic: Callable[[pd.DataFrame], float],
    n_boot: int = 1000,
    seed: int = 0,
    level: float = LEVEL,
) -> Estimate:
    """`statistic(frame)` with its percentile interval over topics, for any statistic of a frame with `qid`.

    The statistic is called n_boot + 1 times; a topic that was drawn twice has its rows twice. Means are
    faster by `bootstrap_mean`.
    """
    codes, n = topic_codes(frame["qid"])
    value = float(statistic(frame))
    if n < 2:
        return Estimate(value, float("nan"), float("nan"), n, level)
    order = np.argsort(codes, kind="stable")
    rows_of = np.split(order, np.cumsum(np.bincount(codes, minlength=n))[:-1])
    replicates = [
        float(statistic(frame.take(np.concatenate([rows_of[t] for t in np.repeat(np.arange(n), weights)]))))
        for block in topic_weights(n, n_boot, seed)
        for weights in block
    ]
    return Estimate(value, *percentile_interval(np.array(replicates), level), n, level)
