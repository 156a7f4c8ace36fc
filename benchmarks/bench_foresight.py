"""Prints one table: foresight of 20 measures, 5 systems and 7,404 topics beside scikit-learn and SciPy.

    python benchmarks/bench_foresight.py

What a user would write instead: `roc_auc_score` twice and `spearmanr` for every measure and system in every
resample of topics. That is timed over a few resamples and multiplied; ours is all 1,000, with Kendall's tau
and the tests beside the IR score. The peak is that of the process, all libraries included.
"""

from __future__ import annotations

import resource
import time

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from timing import against, print_header, print_row

from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.plugins.foresight.measures import foresight

TOPICS, SYSTEMS, MEASURES, RESAMPLES, TIMED = 7404, 5, 20, 1000, 2
SECONDS, GIB = 20, 2


def outcomes() -> tuple[pd.DataFrame, list[AnswerMeasureInfo]]:
    """A row per topic and system: the IR score, 19 noisy copies of it, and a class that depends on it."""
    rng = np.random.default_rng(0)
    size = TOPICS * SYSTEMS
    topic = np.repeat(np.arange(TOPICS), SYSTEMS)
    score = np.clip(rng.normal(0.6, 0.25, TOPICS)[topic] + rng.normal(0, 0.15, size), 0, 1).round(3)
    right = rng.random(size) < 0.1 + 0.6 * score
    label = np.where(right, 5, np.where(rng.random(size) < 0.3, 1, 4))
    system = np.tile(np.arange(SYSTEMS), TOPICS).astype(str)
    frame = pd.DataFrame({"qid": topic.astype(str), "system": system})
    noisy = {f"m{i}": score + rng.normal(0, 0.05 * (i + 1), size) for i in range(MEASURES - 1)}
    infos = [AnswerMeasureInfo(name, name, of="context") for name in noisy]
    return frame.assign(ir_score=score, label=label, **noisy), infos


def by_others(frame: pd.DataFrame, names: list[str], resamples: int) -> None:
    """AUC for two classes and Spearman's correlation of every measure and system in every resample."""
    rng = np.random.default_rng(1)
    parts = [part.reset_index(drop=True) for _, part in frame.groupby("system")]
    for _ in range(resamples):
        drawn = rng.integers(TOPICS, size=TOPICS)
        for part in parts:
            rows = part.iloc[drawn]
            right, lack = rows["label"].eq(5), rows["label"].eq(1)
            for name in names:
                roc_auc_score(right, rows[name])
                roc_auc_score(lack, -rows[name])
                spearmanr(rows[name], right)


def main() -> None:
    frame, infos = outcomes()
    names = ["ir_score", *(info.name for info in infos)]
    foresight(frame, infos, n_boot=2)  # compiles
    start = time.perf_counter()
    foresight(frame, infos, n_boot=RESAMPLES)
    ours = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    start = time.perf_counter()
    by_others(frame, names, TIMED)
    theirs = (time.perf_counter() - start) / TIMED * RESAMPLES
    print_header("what", "ours", "scikit-learn and SciPy", "ratio", "peak memory")
    print_row(
        f"{MEASURES} measures, {SYSTEMS} systems, {TOPICS:,} topics, {RESAMPLES:,} resamples",
        f"{ours:.1f} s" + against(SECONDS, ours, at_most=True),
        f"{theirs:,.0f} s, from {TIMED} resamples",
        f"{theirs / ours:,.0f}x",
        f"{peak:.2f} GiB" + against(GIB, peak, at_most=True),
    )


if __name__ == "__main__":
    main()
