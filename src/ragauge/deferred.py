"""Judging at the end of a sweep, once what all jobs retrieved and answered is known.

All jobs' answers to a topic go into one request (`judge.mode=batch`), or the topics to judge are chosen by
what all jobs retrieved (`judge.sample_design=neyman`). The verdicts go back to each job's MLflow run. What
the ledger holds is not asked again: `python -m ragauge.sweep <folder>` goes on with an interrupted judging.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, chdir, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge import metrics, track
from ragauge.chat_use import Unasked
from ragauge.errors import DataError, RagaugeError
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
from ragauge.needs import before_judging, gathered, of_judge, to_ask
from ragauge.pipeline import Pipeline
from ragauge.redact import remember
from ragauge.store import canonical_json


def judge_deferred(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records of a sweep's jobs, those that were waiting for their verdicts now with them.

    Jobs that share judge, sample and dataset are judged together. A job of which too many verdicts are
    missing is recorded as failed; the others go on.
    """
    waiting = [record for record in records if record.get("deferred")]
    if not waiting:
        return list(records)
    with _started_from(waiting):
        return _judge(records, waiting)


def _started_from(records: Sequence[Mapping[str, Any]]) -> AbstractContextManager[None]:
    """While it lasts, relative paths of the data mean the directory that the jobs were started from."""
    directory = Path(records[0].get("directory", "."))
    return chdir(directory) if directory.is_dir() else nullcontext()


def _judge(records: Sequence[dict[str, Any]], waiting: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    jobs = {int(record["number"]): _job(record) for record in waiting}
    done = {}
    for numbers in _groups(jobs):
        pipelines = {number: jobs[number][0] for number in numbers}
        one, cfg, _ = jobs[numbers[0]]
        predictor = fitting_predictor(one, cfg) if one.sampled_by_prediction else None
        sample_topics(list(pipelines.values()), predictor)
        judged = _judged(pipelines) if _in_batches(one) else _Judged({}, {}, {})
        for number in numbers:
            record = next(r for r in waiting if int(r["number"]) == number)
            done[number] = _finish(record, *jobs[number], judged)
    return [done.get(int(record["number"]), record) for record in records]


def needs_together(records: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """What judging the jobs of a dry run together would need (see ragauge.needs)."""
    later = [record for record in records if record.get("judged_later")]
    if not later:
        return gathered([])
    with _started_from(later):
        return _needs_together({int(record["number"]): _job(record) for record in later})


def _needs_together(jobs: Mapping[int, tuple[Pipeline, Any, JobFolder]]) -> pd.DataFrame:
    found: list[pd.DataFrame] = []
    for numbers in _groups(jobs):
        pipelines = {number: jobs[number][0] for number in numbers}
        one, cfg, _ = jobs[numbers[0]]
        answers = {number: before_judging(pipeline)[1] for number, pipeline in pipelines.items()}
        known = {number: frame for number, frame in answers.items() if frame is not None}
        if not known or one.parts.judge.kind != "chat":
            continue
        sampled = True
        try:
            predictor = fitting_predictor(one, cfg) if one.sampled_by_prediction else None
            sample_topics(list(pipelines.values()), predictor)
        except Unasked:  # which topics depends on what is retrieved: as many others stand for them
            sampled = False
        if _in_batches(one):
            candidates = [to_ask(pipelines[n], frame).assign(candidate=str(n)) for n, frame in known.items()]
            judge: Any = one.parts.judge
            topics, evidence = one.dataset.frame("topics"), one.dataset.frame("evidence")
            together = pd.concat(candidates, ignore_index=True)
            asked = [judge.needs(topics, evidence, together, one.tools, repeat=True).assign(who="judge")]
        else:
            asked = [of_judge(pipelines[n], frame) for n, frame in known.items()]
        found += [frame.assign(exact=frame["exact"] & sampled) for frame in asked]
    return gathered(found)


def _in_batches(pipeline: Pipeline) -> bool:
    return getattr(pipeline.parts.judge, "mode", "") == "batch"


def _groups(jobs: Mapping[int, tuple[Pipeline, Any, JobFolder]]) -> list[list[int]]:
    """The numbers of the jobs that share judge, sample and dataset."""
    groups: dict[str, list[int]] = {}
    for number, (pipeline, cfg, _) in jobs.items():
        sample = None if pipeline.sample is None else asdict(pipeline.sample)
        same = canonical_json(
            [pipeline.identity_of(pipeline.parts.judge), pipeline.dataset.digest, sample, cfg.predictor]
        )
        groups.setdefault(same, []).append(number)
    return list(groups.values())


def _job(record: Mapping[str, Any]) -> tuple[Pipeline, Any, JobFolder]:
    """A finished job's stages (all in the store), config and folder, from what it left behind.

    Store, ledgers and MLflow are those that the job used, whatever directory and environment this is.
    """
    from omegaconf import OmegaConf

    path = Path(record["folder"])
    cfg: Any = OmegaConf.load(path / ".hydra" / "config.yaml")
    if not Path(record["store"]).is_dir():
        raise DataError(
            f"{record['name']} waits for its verdicts, but the store that it used is gone: {record['store']}"
        )
    cfg.store = record["store"]
    cfg.tracking.uri = track.recorded_uri(record["tracking_uri"])
    for part, ledger in record.get("ledgers", {}).items():
        if "ledger" in cfg[part] and "***" not in ledger:
            cfg[part].ledger = ledger
    remember(OmegaConf.to_container(cfg, resolve=True))
    folder = JobFolder(
        path, path.parent, int(record["number"]), record["choices"], tuple(record["overrides"])
    )
    return make_pipeline(cfg, folder), cfg, folder


@dataclass(frozen=True)
class _Judged:
    """What judging jobs together gave: verdicts and repeated verdicts by job, and how stable labels are."""

    verdicts: Mapping[int, pd.DataFrame]
    repeated: Mapping[int, pd.DataFrame]
    stability: Mapping[str, float]


def _judged(pipelines: Mapping[int, Pipeline]) -> _Judged:
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
    stability, repeated = judge.judge_again(topics, evidence, asked, verdicts, one.tools)
    verdicts = verdicts.merge(
        candidates[["qid", "candidate", "n_tokens"]], on=["qid", "candidate"], validate="one_to_one"
    )
    by_job = {int(str(number)): rows for number, rows in verdicts.groupby("candidate")}
    return _Judged(
        {n: by_job[n].drop(columns="candidate").reset_index(drop=True) for n in pipelines},
        {int(str(number)): rows for number, rows in repeated.groupby("candidate")},
        stability,
    )


def _finish(
    record: dict[str, Any],
    pipeline: Pipeline,
    cfg: Any,
    folder: JobFolder,
    judged: _Judged,
) -> dict[str, Any]:
    """Logs a job's verdicts into its run; the record as it is now, on disk, too."""
    tracker = track.Tracker(track.tracking_uri(cfg.tracking.uri), record["experiment"])
    try:
        with tracker.resume(record["run_id"]) as run:
            if folder.number in judged.verdicts:
                pipeline.set_verdicts(judged.verdicts[folder.number])
            values = {**log_verdicts(pipeline, cfg, folder, run, record), **judged.stability}
            if folder.number in judged.repeated:
                for name, value in metrics.costs(judged.repeated[folder.number], "judge_").items():
                    values[name] += value
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
