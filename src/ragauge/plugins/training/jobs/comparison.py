"""Rankings of the same systems before and after a training, paired by topic."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ragauge.estimate.intervals import paired_means
from ragauge.estimate.pairs import sign_flip_p
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.measures.rankings import full_name, metric_of

COLUMNS = ["dataset", "topics", "system", "measure", "before", "after", "difference", "lo", "hi", "p", "n"]
ALL, APART = "all", "apart"  # all topics; those that share no document with the training


def ranked_by(pipeline: Pipeline, systems: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """The measures of every system by topic: [system, qid, measure, value].

    A system is the pipeline's with other components, by group.
    """
    found = []
    for name, parts in systems.items():
        job = Pipeline(
            replace(pipeline.components, **parts),
            pipeline.store,
            pipeline.n_tokens,
            pipeline.n_grid,
            measures=pipeline.measures,
        )
        found.append(job.frame("ranking_values").assign(system=name))
    rows = pd.concat(found, ignore_index=True)[["system", "qid", "measure", "value"]]
    names = {metric_of(name): full_name(name) for name in pipeline.measures}
    return rows.assign(measure=rows["measure"].map(names))


def gains(
    before: pd.DataFrame,
    after: pd.DataFrame,
    dataset: str,
    shared: Collection[str] = (),
    seed: int = 0,
) -> pd.DataFrame:
    """Means before and after, and their paired difference, a row per system and measure (`COLUMNS`).

    before, after: as of `ranked_by`, of the same systems. lo and hi: 95 % interval of the difference over
    topics (`paired_mean`); p: sign flips over topics (`ragauge.estimate.pairs.sign_flip_p`). Where there are
    `shared` topics, which have a relevant document in common with the training, the rest stands as rows of
    its own (`topics` is "apart").
    """
    rows = []
    joined = before.merge(after, on=["system", "qid", "measure"], suffixes=("_before", "_after"))
    parts = {ALL: joined, **({APART: joined[~joined["qid"].isin(shared)]} if shared else {})}
    for part, frame in parts.items():
        for (system, measure), of in frame.groupby(["system", "measure"], sort=False):
            pair = of[["value_before", "value_after"]].dropna()
            if pair.empty:
                continue
            difference = (pair["value_after"] - pair["value_before"]).to_numpy()[:, None]
            (estimate,) = paired_means(difference)
            means = (pair["value_before"].mean(), pair["value_after"].mean())
            p = float(sign_flip_p(difference, seed)[0])
            interval = (estimate.value, estimate.lo, estimate.hi)
            rows.append([dataset, part, system, measure, *means, *interval, p, len(pair)])
    return pd.DataFrame(rows, columns=COLUMNS)


def as_metrics(table: pd.DataFrame, prefix: str = "") -> dict[str, float]:
    """Metrics over all topics: <prefix><system>_<measure>_before, _after, _gain, _gain_lo, _gain_hi."""
    found: dict[str, float] = {}
    ends = ("before", "after", "gain", "gain_lo", "gain_hi")
    for row in table[table["topics"] == ALL].itertuples():
        name = f"{prefix}{row.system}_{metric_of(str(row.measure))}"
        values: Any = (row.before, row.after, row.difference, row.lo, row.hi)
        found |= {f"{name}_{end}": value for end, value in zip(ends, values, strict=True)}
    return {name: float(value) for name, value in found.items() if not np.isnan(value)}
