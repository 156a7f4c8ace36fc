"""Judging at the end of a sweep: all jobs' answers to a topic in one request (`judge.mode=batch`).

The verdicts go back to each job's MLflow run. What the ledger holds is not asked again, so an interrupted
judging goes on with `python -m ragauge.sweep <folder>`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge import metrics, track
from ragauge.errors import RagaugeError
from ragauge.job import RECORD_FILE, JobFolder, check_gates, log_verdicts, make_pipeline, write_json
from ragauge.parts import identity
from ragauge.pipeline import Pipeline
from ragauge.store import canonical_json


def judge_deferred(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records of a sweep's jobs, those that were waiting for their verdicts now with them.

    Jobs that share judge and dataset are judged together. A job of which too many verdicts are missing is
    recorded as failed; the others go on.
    """
    waiting = [record for record in records if record.get("deferred")]
    jobs = {int(record["number"]): _job(record) for record in waiting}
    groups: dict[str, list[int]] = {}
    for number, (pipeline, _, _) in jobs.items():
        same = canonical_json([identity(pipeline.parts.judge), pipeline.dataset.digest])
        groups.setdefault(same, []).append(number)
    done = {}
    for numbers in groups.values():
        verdicts, stability = _verdicts({number: jobs[number][0] for number in numbers})
        for number in numbers:
            record = next(r for r in waiting if int(r["number"]) == number)
            done[number] = _finish(record, *jobs[number], verdicts[number], stability)
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
            pipeline.answers[["qid", "n_tokens", "answer"]].assign(candidate=str(number))
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
    verdicts: pd.DataFrame,
    stability: Mapping[str, float],
) -> dict[str, Any]:
    """Logs a job's verdicts into its run; the record as it is now, on disk, too."""
    tracker = track.Tracker(track.tracking_uri(cfg.tracking.uri), record["experiment"])
    try:
        with tracker.resume(record["run_id"]) as run:
            pipeline.set_verdicts(verdicts)
            values = {**log_verdicts(pipeline, cfg, folder, run, record), **stability}
            run.metrics(values)
        record = {**record, "deferred": False, "metrics": {**record["metrics"], **values}}
        print(metrics.line(record["name"], record["metrics"]), file=sys.stderr)
        check_gates(dict(cfg.gate), record["metrics"])
    except RagaugeError as error:
        failed = {} if record["deferred"] is False else {"status": "FAILED"}
        record = {**record, **failed, "error": str(error), "exit_code": error.exit_code}
    write_json(folder.path / RECORD_FILE, record)
    return record
