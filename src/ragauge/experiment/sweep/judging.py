"""Judges at the end of a sweep, after all jobs have retrieved and answered.

All jobs' answers to a topic go into one request (`judge.mode=batch`), or the topics to judge are chosen by
what all jobs retrieved (`judge.sample_design=neyman`). The verdicts go back to each job's MLflow run. Replies in the
ledger are not asked for again: `ragauge pool <folder>` goes on with an interrupted judging.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from ragauge import track
from ragauge.contract.answering import BatchJudge
from ragauge.contract.current_job import working_on
from ragauge.contract.errors import RagaugeError, ServerGoneError
from ragauge.contract.record import JobRecord
from ragauge.experiment.gates import gates
from ragauge.experiment.measured import MeasuredJob, fitting_predictor, log_verdicts, measured_by, sample_topics
from ragauge.experiment.request import AskedInVain
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.experiment.sweep.waiting import judged_alike, started_from, waiting_job
from ragauge.findings.asked_again import judged_again
from ragauge.findings.people import in_numbers

log = logging.getLogger(__name__)


def judge_deferred(records: Sequence[JobRecord]) -> list[JobRecord]:
    """The records of a sweep's jobs, after judging those that waited for verdicts.

    Jobs that share judge, sample and dataset are judged together. Jobs that cannot be judged, or that miss too many
    verdicts, are recorded as failed; the others go on.
    """
    waiting = [record for record in records if record.deferred]
    if not waiting:
        return list(records)
    with started_from(waiting), working_on(waiting[0].folder.parent):
        done = _judge_each_group(waiting)
    return [done.get(record.number, record) for record in records]


def _judge_each_group(waiting: Sequence[JobRecord]) -> dict[int, JobRecord]:
    """The new records of all jobs, failed ones included, by number."""
    done: dict[int, JobRecord] = {}
    groups: dict[str, list[MeasuredJob]] = {}
    for record in waiting:
        try:
            job = waiting_job(record)
            groups.setdefault(judged_alike(job), []).append(job)
        except Exception as error:
            done[record.number] = _failed(record, error)
    for jobs in groups.values():
        judged: _Judged | Exception
        notes = AskedInVain(jobs[0].folder, jobs[0].settings)
        try:
            notes.refuse("judge")
            judged = _judge(jobs)
        except ServerGoneError as error:
            notes.leave(error)
            judged = error
        except Exception as error:
            judged = error
        done |= {job.folder.number: _finish(job, judged) for job in jobs}
    return done


@dataclass(frozen=True)
class _Judged:
    """The results of judging jobs together: verdicts and repeated verdicts by job, and the stability of labels."""

    verdicts: Mapping[int, pd.DataFrame]
    repeated: Mapping[int, pd.DataFrame]
    stability: Mapping[str, float]


def _judge(jobs: Sequence[MeasuredJob]) -> _Judged:
    """Chooses the topics to judge, and judges them if the judge sees all jobs at once."""
    pipelines = {job.folder.number: job.pipeline for job in jobs}
    one = jobs[0]
    predictor = fitting_predictor(one.pipeline, one.settings) if one.pipeline.sampled_by_prediction else None
    sample_topics(list(pipelines.values()), predictor)
    if one.pipeline.components.judge.mode != "batch":
        return _Judged({}, {}, {})
    return _judged(pipelines)


def _judged(pipelines: Mapping[int, Pipeline]) -> _Judged:
    one = next(iter(pipelines.values()))
    topics, evidence = one.frame("topics"), one.frame("evidence")
    candidates = pd.concat(
        [
            pipeline.to_judge(pipeline.answers)[["qid", "n_tokens", "answer"]].assign(candidate=str(number))
            for number, pipeline in pipelines.items()
        ],
        ignore_index=True,
    )
    judge = one.components.judge
    assert isinstance(judge, BatchJudge)
    asked = candidates[["qid", "candidate", "answer"]]
    verdicts = judge.judge_candidates(topics, evidence, asked, one.tools)
    stability, repeated = judged_again(one, asked, verdicts)
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
    job: MeasuredJob,
    judged: _Judged | Exception,
) -> JobRecord:
    """Logs a job's verdicts, or why they are missing, into its run; returns the updated, saved record."""
    record, pipeline, settings = job.record, job.pipeline, job.settings
    tracker = track.Tracker(track.tracking_uri(settings.tracking.uri), record.experiment)
    try:
        with tracker.resume(record.run_id) as run:
            if isinstance(judged, Exception):
                raise judged
            if job.folder.number in judged.verdicts:
                pipeline.set_verdicts(judged.verdicts[job.folder.number])
            if judged.verdicts:
                again = judged.repeated.get(job.folder.number, pd.DataFrame())
                job.judged_again = judged.stability, again
            log_verdicts(job, run)
            job.tag_entries(run)
        record.status, record.exit_code, record.deferred = "FINISHED", 0, False
        record.error = record.error_type = ""  # an earlier attempt may have left its failure
        record.metrics = {**record.metrics, **job.metrics}
        record.measured_by = measured_by(pipeline)
        print(*in_numbers(record), sep="\n", file=sys.stderr)
        pipeline.check_measured()
        for gate in gates(settings):
            gate.enforce(settings, record, lambda: pipeline.sliced)
    except Exception as error:
        return _failed(record, error)
    record.write()
    return record


def _failed(record: JobRecord, error: Exception) -> JobRecord:
    """The saved record of a job with its error; the job still waits for its verdicts."""
    record = replace(record, status="FAILED" if record.deferred else record.status)
    if isinstance(error, RagaugeError):
        record.error, record.error_type, record.exit_code = str(error), type(error).__name__, error.exit_code
    else:
        log.error("%s failed", record.name, exc_info=error)
        record.error, record.exit_code = f"{type(error).__name__}: {error}", 1
    record.write()
    return record
