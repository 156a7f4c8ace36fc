"""Judging at the end of a sweep, once what all jobs retrieved and answered is known.

All jobs' answers to a topic go into one request (`judge.mode=batch`), or the topics to judge are chosen by
what all jobs retrieved (`judge.sample_design=neyman`). The verdicts go back to each job's MLflow run. What
the ledger holds is not asked again: `python -m ragauge.experiment.sweeps <folder>` goes on with an
interrupted judging.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge import track
from ragauge.contract.errors import RagaugeError
from ragauge.contract.identity import identity
from ragauge.contract.records import RECORD_FILE
from ragauge.experiment import metrics
from ragauge.experiment.job import (
    JobFolder,
    check_gates,
    fitting_predictor,
    log_verdicts,
    make_pipeline,
    sample_topics,
    write_json,
)
from ragauge.experiment.pipeline import Pipeline
from ragauge.store import canonical_json


def judge_deferred(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records of a sweep's jobs, those that were waiting for their verdicts now with them.

    Jobs that share judge, sample and dataset are judged together. A job of which too many verdicts are
    missing is recorded as failed; the others go on.
    """
    waiting = [record for record in records if record.get("deferred")]
    jobs = {int(record["number"]): _job(record) for record in waiting}
    groups: dict[str, list[int]] = {}
    for number, (pipeline, cfg, _) in jobs.items():
        sample = None if pipeline.sample is None else asdict(pipeline.sample)
        same = canonical_json(
            [identity(pipeline.parts.judge), pipeline.dataset.digest, sample, cfg.predictor]
        )
        groups.setdefault(same, []).append(number)
    done = {}
    for numbers in groups.values():
        pipelines = {number: jobs[number][0] for number in numbers}
        one, cfg, _ = jobs[numbers[0]]
        predictor = fitting_predictor(one, cfg) if one.sampled_by_prediction else None
        sample_topics(list(pipelines.values()), predictor)
        batch = getattr(one.parts.judge, "mode", "") == "batch"
        verdicts, stability = _verdicts(pipelines) if batch else ({}, {})
        for number in numbers:
            record = next(r for r in waiting if int(r["number"]) == number)
            done[number] = _finish(record, *jobs[number], verdicts.get(number), stability)
    return [done.get(int(record["number"]), record) for record in records]


def _job(record: Mapping[str, Any]) -> tuple[Pipeline, Any, JobFolder]:
    """A finished job's stages (all in the store), config and folder, from what it left behind."""
    from omegaconf import OmegaConf

    path = Path(record["folder"])
    cfg: Any = OmegaConf.load(path / ".hydra" / "config.yaml")
    folder = JobFolder(
        path, path.parent, int(record["number"]), record["choices"], tuple(record["overrides"])
    )
    return make_pipeline(cfg, folder), cfg, folder


def _verdicts(pipelines: Mapping[int, Pipeline]) -> tuple[dict[int, pd.DataFrame], dict[str, float]]:
    """The verdicts of every job, and how stable the judge's labels are where that is measured."""
    one = next(iter(pipelines.values()))
    topics, evidence = one.dataset.frame("topics"), one.dataset.frame("evidence")
    candidates = pd.concat(
        [
            pipeline.to_judge(pipeline.answers)[["qid", "n_tokens", "answer"]].assign(candidate=str(number))
            for number, pipeline in pipelines.items()
        ],
        ignore_index=True,
    )
    judge: Any = one.parts.judge
    asked = candidates[["qid", "candidate", "answer"]]
    verdicts = judge.judge_candidates(topics, evidence, asked, one.tools)
    stability = judge.judge_again(topics, evidence, asked, verdicts, one.tools)
    verdicts = verdicts.merge(
        candidates[["qid", "candidate", "n_tokens"]], on=["qid", "candidate"], validate="one_to_one"
    )
    by_job = {int(str(number)): rows for number, rows in verdicts.groupby("candidate")}
    return {n: by_job[n].drop(columns="candidate").reset_index(drop=True) for n in pipelines}, stability


def _finish(
    record: dict[str, Any],
    pipeline: Pipeline,
    cfg: Any,
    folder: JobFolder,
    verdicts: pd.DataFrame | None,
    stability: Mapping[str, float],
) -> dict[str, Any]:
    """Logs a job's verdicts into its run; the record as it is now, on disk, too."""
    tracker = track.Tracker(track.tracking_uri(cfg.tracking.uri), record["experiment"])
    try:
        with tracker.resume(record["run_id"]) as run:
            if verdicts is not None:
                pipeline.set_verdicts(verdicts)
            values = {**log_verdicts(pipeline, cfg, folder, run, record), **stability}
            run.metrics(values)
        # An earlier attempt may have left its failure.
        record = {**record, "status": "FINISHED", "exit_code": 0, "deferred": False}
        record = {k: v for k, v in record.items() if k != "error"} | {"metrics": record["metrics"] | values}
        print(metrics.line(record["name"], record["metrics"]), file=sys.stderr)
        check_gates(dict(cfg.gate), record["metrics"])
    except RagaugeError as error:
        failed = {} if record["deferred"] is False else {"status": "FAILED"}
        record = {**record, **failed, "error": str(error), "exit_code": error.exit_code}
    write_json(folder.path / RECORD_FILE, record)
    return record
