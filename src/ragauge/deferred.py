"""Judging at the end of a sweep, once what all jobs retrieved and answered is known.

All jobs' answers to a topic go into one request (`judge.mode=batch`), or the topics to judge are chosen by
what all jobs retrieved (`judge.sample_design=neyman`). The verdicts go back to each job's MLflow run. What
the ledger holds is not asked again: `python -m ragauge.sweep <folder>` goes on with an interrupted judging.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge import metrics, track
from ragauge.errors import RagaugeError
from ragauge.job import (
    RECORD_FILE,
    JobFolder,
    check_gates,
    fitting_predictor,
    log_verdicts,
    make_pipeline,
    sample_topics,
    write_json,
)
from ragauge.parts import identity
from ragauge.pipeline import Pipeline
from ragauge.store import canonical_json

log = logging.getLogger(__name__)


def judge_deferred(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records of a sweep's jobs, those that were waiting for their verdicts now with them.

    Jobs that share judge, sample and dataset are judged together. Jobs that cannot be judged, or of which too
    many verdicts are missing, are recorded as failed; the others go on.
    """
    done: dict[int, dict[str, Any]] = {}
    groups: dict[str, dict[int, _Job]] = {}
    for record in records:
        if record.get("deferred"):
            number = int(record["number"])
            try:
                job = _job(record)
                groups.setdefault(_judged_alike(job), {})[number] = job
            except Exception as error:
                done[number] = _failed(record, error)
    for jobs in groups.values():
        judged: tuple[dict[int, pd.DataFrame], dict[str, float]] | Exception
        try:
            judged = _judge(jobs)
        except Exception as error:
            judged = error
        done |= {number: _finish(job, number, judged) for number, job in jobs.items()}
    return [done.get(int(record["number"]), record) for record in records]


@dataclass(frozen=True)
class _Job:
    """A job that waits for its verdicts: its record, its stages (all in the store), config and folder."""

    record: dict[str, Any]
    pipeline: Pipeline
    cfg: Any
    folder: JobFolder


def _judged_alike(job: _Job) -> str:
    """Equal texts for the jobs that are judged together."""
    sample = None if job.pipeline.sample is None else asdict(job.pipeline.sample)
    judge, dataset = job.pipeline.parts.judge, job.pipeline.dataset
    return canonical_json([identity(judge), dataset.digest, sample, job.cfg.predictor])


def _judge(jobs: Mapping[int, _Job]) -> tuple[dict[int, pd.DataFrame], dict[str, float]]:
    """Chooses the topics that are judged; of a judge that sees all jobs at once, what `_verdicts` returns."""
    pipelines = {number: job.pipeline for number, job in jobs.items()}
    one = next(iter(jobs.values()))
    predictor = fitting_predictor(one.pipeline, one.cfg) if one.pipeline.sampled_by_prediction else None
    sample_topics(list(pipelines.values()), predictor)
    batch = getattr(one.pipeline.parts.judge, "mode", "") == "batch"
    return _verdicts(pipelines) if batch else ({}, {})


def _job(record: dict[str, Any]) -> _Job:
    """A finished job from what it left behind."""
    from omegaconf import OmegaConf

    path = Path(record["folder"])
    cfg: Any = OmegaConf.load(path / ".hydra" / "config.yaml")
    folder = JobFolder(
        path, path.parent, int(record["number"]), record["choices"], tuple(record["overrides"])
    )
    return _Job(record, make_pipeline(cfg, folder), cfg, folder)


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
    job: _Job, number: int, judged: tuple[dict[int, pd.DataFrame], dict[str, float]] | Exception
) -> dict[str, Any]:
    """Logs a job's verdicts, or why there are none, into its run; the record as it is now, on disk, too."""
    record, pipeline, cfg = job.record, job.pipeline, job.cfg
    tracker = track.Tracker(track.tracking_uri(cfg.tracking.uri), record["experiment"])
    try:
        with tracker.resume(record["run_id"]) as run:
            if isinstance(judged, Exception):
                raise judged
            verdicts, stability = judged
            if number in verdicts:
                pipeline.set_verdicts(verdicts[number])
            values = {**log_verdicts(pipeline, cfg, job.folder, run, record), **stability}
            run.metrics(values)
        # An earlier attempt may have left its failure.
        record = {**record, "status": "FINISHED", "exit_code": 0, "deferred": False}
        record = {k: v for k, v in record.items() if k != "error"} | {"metrics": record["metrics"] | values}
        print(metrics.line(record["name"], record["metrics"]), file=sys.stderr)
        check_gates(dict(cfg.gate), record["metrics"])
    except Exception as error:
        return _failed(record, error)
    write_json(job.folder.path / RECORD_FILE, record)
    return record


def _failed(record: dict[str, Any], error: Exception) -> dict[str, Any]:
    """The record of a job with its error, on disk, too; the job goes on waiting for its verdicts."""
    failed = {} if record["deferred"] is False else {"status": "FAILED"}
    if isinstance(error, RagaugeError):
        told = {"error": str(error), "exit_code": error.exit_code}
    else:
        log.error("%s failed", record["name"], exc_info=error)
        told = {"error": f"{type(error).__name__}: {error}", "exit_code": 1}
    record = {**record, **failed, **told}
    write_json(Path(record["folder"]) / RECORD_FILE, record)
    return record
