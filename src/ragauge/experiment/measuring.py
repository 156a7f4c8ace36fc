"""Measures a job: runs its stages, and after each phase its findings, into one MLflow run."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ragauge import track
from ragauge.contract.answering import ASKED
from ragauge.contract.datasets import Monitored
from ragauge.contract.interruption import refuse_lost
from ragauge.contract.loading import build, class_of
from ragauge.contract.record import JobRecord
from ragauge.experiment.described import describe, last_lines
from ragauge.experiment.folder import JobFolder
from ragauge.experiment.gates import gates
from ragauge.experiment.measured import MeasuredJob
from ragauge.experiment.measured_by import measured_by, sample_topics
from ragauge.experiment.prepared import judged_later, prepared
from ragauge.experiment.request import description, first_tags, logged_params, write_config
from ragauge.experiment.verdicts import log_verdicts
from ragauge.findings.thresholds import score_settings
from ragauge.track import views

log = logging.getLogger(__name__)

_SWEEP_FILE = "multirun.yaml"  # Hydra writes it when a sweep starts
_RECORDED = ("docs", "run", "unranked", "layouts", "part_scores")  # frames: where a report finds what a job laid out


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
    file = None if folder.sweep is None else Path(folder.sweep) / _SWEEP_FILE
    return file.stat().st_mtime if file is not None and file.is_file() else time.time()


def measure(cfg: DictConfig, folder: JobFolder, record: JobRecord) -> None:
    """Measures the job into its own MLflow run, fills the record, and checks the gate."""
    start = time.perf_counter()
    # The config error of a single job leaves no run behind; in a sweep every job has its run.
    ready = prepared(cfg, folder) if folder.sweep is None else None
    tracker = track.Tracker(track.tracking_uri(cfg.tracking.uri), record.experiment)
    opened = (record.name, logged_params(cfg), first_tags(cfg, folder), description(cfg, folder))
    compared: list[str] = []
    with tracker.run(*opened, folder.ended_run) as run:
        record.run_id, record.experiment_id = run.run_id, run.experiment_id
        refuse_lost()
        pipeline, model = ready or prepared(cfg, folder)
        job = MeasuredJob(pipeline, cfg, folder, record, model)
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
    for line in last_lines(cfg, folder, record):
        log.info("%s", line)
    for line in compared:
        print(line)
    if not record.deferred:
        for gate in gates(cfg):
            gate.enforce(cfg, record, lambda: pipeline.sliced)


def _find_out(job: MeasuredJob, run: track.Run) -> None:
    """Computes the findings in order, so that those without an LLM are in MLflow before it is asked for hours."""
    pipeline, record, of = job.pipeline, job.record, job.pipeline.components
    record.deferred = judged_later(pipeline, job.folder)
    (run.folder / "config").mkdir()
    write_config(job.cfg, job.folder, run.folder / "config")
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
        if job.cfg.judge.get("looks") is not None:
            run.flush()  # the gate reads the run
            for gate in gates(job.cfg):
                gate.judge_in_looks(job, run)
        log_verdicts(job, run)
    job.find_out("all", run)
    used = job.tag_entries(run)
    if record.deferred:
        record.entries_used = used
