"""Variation of answer measures between repeated measurements, on a sample of topics."""

from __future__ import annotations

from functools import partial

import pandas as pd

from ragauge.contract.finding import Found, Founds, JobFinding
from ragauge.contract.jobs import Job
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.outcomes import CLUSTER
from ragauge.contract.stages import Read, Reads
from ragauge.estimate.board import mean_of
from ragauge.experiment.dry_run import SALT, drawn, measured, repeating
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.llms.chat_use import RepeatingChat


class Repeats(JobFinding):
    """Variation of answer measures that ask an LLM when they are measured again."""

    name = "repeats"
    after = "answers"

    def compute(self, job: Job, found: Founds) -> Found:
        """Returns metrics only."""
        assert isinstance(job.pipeline, Pipeline)  # it runs stages itself
        return Found(metrics=repeats(job.pipeline, job.n_boot, job.seed))


def repeats(pipeline: Pipeline, n_boot: int, seed: int) -> dict[str, float]:
    """Metrics of the measures with a `repeat`: {} if none has one.

    `<measure>_repeat_difference`: mean over topics of |second value - first value|, with its interval.
    `<measure>_repeat_topics`: the topics that have both. `<measure>_repeat_missing`: the share of the topics measured
    again that have no pair, unless both values are missing for the same reason.
    """
    values: dict[str, float] = {}
    found = pipeline.frame("answer_values")
    for stage in repeating(pipeline):
        qids = drawn(pipeline.answers, stage.component, seed)
        chat = pipeline.evaluator_chat
        assert chat is not None
        chat.asking = stage.asks_as
        reads = Reads(stage.reads, partial(_read, pipeline, qids), lambda read: pipeline.folder_of(read.name))
        again = measured(stage, reads, pipeline.tools, RepeatingChat(chat, SALT))
        for info in stage.infos:
            first = found[found["measure"].eq(info.name) & found["qid"].isin(qids)]
            second = again[again["measure"].eq(info.name)]
            values |= _differences(info, first, second, n_boot, seed, pipeline.clusters.get(CLUSTER))
    return values


def _read(pipeline: Pipeline, qids: list[str], read: Read) -> pd.DataFrame:
    frame = pipeline.frame(read.name)
    return frame[frame["qid"].isin(qids)].reset_index(drop=True)


def _differences(
    info: AnswerMeasureInfo,
    first: pd.DataFrame,
    again: pd.DataFrame,
    n_boot: int,
    seed: int,
    clusters: pd.Series | None = None,
) -> dict[str, float]:
    both = first.merge(again, on="qid", suffixes=("", "_again"), validate="one_to_one")
    moved = (both["value_again"] - both["value"]).abs()
    paired = moved.notna()
    same = both["value"].isna() & both["status"].eq(both["status_again"])
    name = f"{info.name}_repeat"
    told: dict[str, float] = {f"{name}_topics": int(paired.sum())}
    if len(both):
        told[f"{name}_missing"] = float((~paired & ~same).mean())
    if not paired.any():
        return told
    of = None if clusters is None else both["qid"].map(clusters)[paired]
    mean = mean_of(moved[paired], both.loc[paired, "qid"], info, n_boot, seed, clusters=of)
    return {
        f"{name}_difference": mean.value, f"{name}_difference_lo": mean.lo, f"{name}_difference_hi": mean.hi,
        **told,
    }  # fmt: skip
