"""Runs one job: from a composed config to an MLflow run and a record in its folder.

Config and stages are checked before any work. After each phase of stages the findings that need it are computed, logged
and printed, so that those without an LLM are in MLflow before it is asked for hours.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ragauge import track
from ragauge.contract.answering import ASKED
from ragauge.contract.current_job import working_on
from ragauge.contract.datasets import Monitored, Source
from ragauge.contract.errors import ConfigError, ServerGoneError, UnreadableJudgeError
from ragauge.contract.families import check_primary
from ragauge.contract.finding import JobFinding
from ragauge.contract.interruption import refuse_lost
from ragauge.contract.loading import build, class_of, locate, points_of
from ragauge.contract.record import JobRecord
from ragauge.contract.redact import remember
from ragauge.contract.settings import Settings
from ragauge.contract.visible import IN_FILE
from ragauge.diagnose.failures import check_rules
from ragauge.experiment.earlier import earlier_labels
from ragauge.experiment.gates import gates
from ragauge.experiment.guard import OUTPUT, STORE, guarded
from ragauge.experiment.measured import (
    MeasuredJob,
    describe,
    findings_for,
    fitting_predictor,
    log_verdicts,
    measured_by,
    sample_topics,
)
from ragauge.experiment.request import SWEEP_FILE, AskedInVain, JobFolder, Request, write_config
from ragauge.experiment.setup.config import READ_BY_PACKAGES, settle
from ragauge.experiment.stages.checks import check_measures, check_ready
from ragauge.experiment.stages.components import make_pipeline
from ragauge.findings.people import in_numbers
from ragauge.findings.terminal import NAME_WIDTH
from ragauge.findings.thresholds import score_settings
from ragauge.track import views

log = logging.getLogger(__name__)

_RECORDED = ("docs", "run", "unranked", "layouts", "part_scores")  # frames: where a report finds what a job laid out


def execute(cfg: DictConfig, folder: JobFolder) -> int:
    """Runs the job and returns its exit code; prints a failure and records it in MLflow and in `job.json`."""
    settle(cfg)
    request = Request(cfg, folder)
    record = request.record()

    def work() -> None:
        record.take(request.places())
        try:
            with working_on(folder.path):
                remember(OmegaConf.to_container(cfg, resolve=True))
                record.snapshot = pin_window(cfg, folder)
                _run(request, record)
        except (UnreadableJudgeError, ServerGoneError) as error:
            AskedInVain(folder, request.settings).leave(error)
            raise

    def database() -> Path | None:  # None for a server, or if the job ended before it was known
        return track.local_database(record.tracking_uri) if record.tracking_uri else None

    return guarded(record, work, {STORE: str(cfg.store), OUTPUT: folder.path}, database)


def _run(request: Request, record: JobRecord) -> None:
    if request.folder.sweep is not None and not request.cfg.dry_run:
        try:
            _ = request.settings
        except ConfigError:
            with _opened(request, record):  # in a sweep every job has its run
                raise
    source = class_of("dataset", request.settings.dataset.get("_target_"), Source)
    if source is not None and source.run_job:
        locate("dataset.run_job", source.run_job)(request, record)
    elif request.settings.dry_run:
        from ragauge.experiment.dry_run import dry_run

        dry_run(prepared(request, record))
    else:
        AskedInVain(request.folder, request.settings).refuse("llm", "judge", "evaluator")
        measure(request, record)


def pin_window(cfg: DictConfig, folder: JobFolder) -> str:
    """Reads the window of a dataset of traces, and writes its ends into the config as times.

    The window of all jobs of a sweep ends when the sweep began. Returns the file with the traces; "" for any other
    dataset.
    """
    monitored = class_of("dataset", cfg.dataset.get("_target_"), Monitored)  # type: ignore[type-abstract]
    if monitored is None:
        return ""
    spec: Any = OmegaConf.to_container(cfg.dataset, resolve=True, throw_on_missing=True)
    if spec.get("snapshot") is None:
        pinned = monitored.pinned(spec, _started(folder))
        OmegaConf.update(cfg, "dataset", pinned, force_add=True)
        spec |= pinned
    return str(build("dataset", spec, {}).files()["traces"])


def _started(folder: JobFolder) -> float:
    """Start of the sweep or job, in seconds since 1970."""
    file = None if folder.sweep is None else Path(folder.sweep) / SWEEP_FILE
    return file.stat().st_mtime if file is not None and file.is_file() else time.time()


def prepared(request: Request, record: JobRecord) -> MeasuredJob:
    """The job with its stages and predictor, after every check that needs no work."""
    settings, folder = request.settings, request.folder
    pipeline = make_pipeline(request)
    _ = pipeline.sliced, pipeline.clusters  # checks slices and clusters before any work
    for gate in gates(settings):
        gate.check(settings, pipeline, request.name, request.experiment, folder.sweep_id)
    check_primary(settings.report.primary, [info.name for info in pipeline.answer_measures])
    check_settings(settings)
    check_measures(pipeline, alone=folder.sweep is None)
    for finding in findings_for(settings):
        finding.check(settings, pipeline.answer_measures)
    earlier_labels(settings, pipeline.frame("topics"))  # checks the earlier run before any work
    if settings.failures == "rules":
        check_rules([info.name for info in pipeline.answer_measures])
    return MeasuredJob(pipeline, request, record, fitting_predictor(pipeline, settings))


def check_settings(settings: Settings) -> None:
    """ConfigError for a setting without an installed package that reads it, and for looks without a gate."""
    if (looks := settings.judge.get("looks")) is not None and not settings.gate:
        raise ConfigError(
            f"judge.looks={looks} stops once the gate is decided: give a rule about verdicts, such as "
            "+gate.correct_share=0.6"
        )
    group = JobFinding.group_on_use
    for key in READ_BY_PACKAGES:
        value = attrgetter(key)(settings)
        if value and value != "auto" and key not in {point.name for point in points_of(group)}:
            raise ConfigError(f"{key}={value}: no plug-in is installed that reads it (entry point {key} of {group})")


def measure(request: Request, record: JobRecord) -> None:
    """Measures the job into its own MLflow run, fills the record, and checks the gate."""
    start = time.perf_counter()
    folder, settings = request.folder, request.settings
    # The config error of a single job leaves no run behind; in a sweep every job has its run.
    ready = prepared(request, record) if folder.sweep is None else None
    compared: list[str] = []
    with _opened(request, record) as (tracker, run):
        refuse_lost()
        job = ready or prepared(request, record)
        pipeline = job.pipeline
        check_ready(pipeline)
        describe(job, run)
        _find_out(job, run)
        times = {f"seconds_{stage}": seconds for stage, seconds in pipeline.seconds.items()}
        job.log(run, {**times, "stages_made": len(pipeline.made), "seconds_total": time.perf_counter() - start})
        if folder.origin and folder.sweep is None:
            compared = folder.origin.compared(tracker, run)
        record.settings, record.metrics, record.stages_made = score_settings(pipeline), job.metrics, pipeline.made
        if not record.deferred:
            record.measured_by = measured_by(pipeline)
    if folder.sweep is None:
        tracker.present([views.jobs_view()], views.description(record.experiment_id), replace=False)
    record.status = "FINISHED"
    for line in in_numbers(record, folder.jobs, max(NAME_WIDTH, folder.widest(record.name))):
        log.info("%s", line)
    # A sweep says at its end where everything is.
    log.info("%s", request.where(record), extra=None if folder.sweep is None else IN_FILE)
    for line in compared:
        print(line)
    pipeline.check_measured()
    if not record.deferred:
        for gate in gates(settings):
            gate.enforce(settings, record, lambda: pipeline.sliced)


@contextmanager
def _opened(request: Request, record: JobRecord) -> Iterator[tuple[track.Tracker, track.Run]]:
    """The job's MLflow run, whose ids the record takes."""
    tracker = track.Tracker(track.tracking_uri(request.cfg.tracking.uri), record.experiment)
    opened = (record.name, request.params(), request.tags(), request.description())
    with tracker.run(*opened, request.folder.ended_run) as run:
        record.run_id, record.experiment_id = run.run_id, run.experiment_id
        yield tracker, run


def _find_out(job: MeasuredJob, run: track.Run) -> None:
    """Runs the stages and computes the findings, phase by phase."""
    pipeline, record, of = job.pipeline, job.record, job.pipeline.components
    record.deferred = job.judged_later
    write_config(job.request.cfg, run.folder / "config", job.folder.overrides)
    job.find_out("scores", run)
    record.dataset_digest = pipeline.entry("dataset").digest
    made = {frame for stage in pipeline.stages for frame in stage.makes}
    kept = [pipeline.entry_of(frame) for frame in _RECORDED if frame in made]
    record.entries = {entry.key.stage: entry.digest for entry in kept}
    if of.llm.kind in ASKED or of.judge.kind == "chat":
        run.flush()
    job.find_out("answers", run)
    if not record.deferred:
        sample_topics([pipeline], job.model)
        if job.settings.judge.get("looks") is not None:
            run.flush()  # the gate reads the run
            for gate in gates(job.settings):
                gate.judge_in_looks(job, run)
        log_verdicts(job, run)
    job.find_out("all", run)
    used = job.tag_entries(run)
    if record.deferred:
        record.entries_used = used
