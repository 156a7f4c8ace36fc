"""A job of recorded outcomes: makes and logs the estimates, without retrieving, answering or judging."""

from __future__ import annotations

import time

from ragauge import track
from ragauge.contract.errors import ConfigError
from ragauge.contract.interruption import refuse_lost
from ragauge.contract.loading import build
from ragauge.contract.record import JobRecord
from ragauge.experiment.gates import gates
from ragauge.experiment.request import Request, write_config
from ragauge.experiment.stages.plan import file_digest
from ragauge.plugins.outcomes.dataset import RecordedOutcomes
from ragauge.plugins.outcomes.finding import REPORT, Recorded
from ragauge.track import views


def run_recorded(request: Request, record: JobRecord) -> None:
    """Logs the estimates of recorded outcomes as an MLflow run with metrics, tables, figures and a report."""
    start = time.perf_counter()
    settings, folder = request.settings, request.folder
    _check(request)
    source: RecordedOutcomes = build("dataset", settings.dataset, {})
    file = source.files()["outcomes"]
    digest = file_digest(file)
    if settings.dry_run:
        record.status = "DRY RUN"
        print(f"{record.name:<32} no LLM calls")
        return
    value = Recorded.of(source.outcomes(settings.cluster), source.judged_shares, record, file)
    tracker = track.Tracker(track.tracking_uri(settings.tracking.uri), record.experiment)
    opened = (record.name, request.params(), request.tags(), settings.tracking.note)
    compared: list[str] = []
    with tracker.run(*opened, folder.ended_run) as run:
        record.run_id, record.experiment_id, record.dataset_digest = run.run_id, run.experiment_id, digest
        refuse_lost()
        run.tag({"dataset_digest": digest})
        found = value.found(record.experiment, settings.tracking.note or "")
        track.log_found(run, found)
        found.files[REPORT](folder.path / REPORT)
        write_config(request.cfg, run.folder / "config", folder.overrides)
        times = {"seconds_total": time.perf_counter() - start}
        run.metrics(times)
        if folder.origin:
            compared = folder.origin.compared(tracker, run)
        record.metrics = {**found.metrics, **times}
    tracker.present([views.jobs_view()], views.description(record.experiment_id), replace=False)
    record.status = "FINISHED"
    print(*value.lines, *compared, sep="\n")
    print(f"report: {folder.path / REPORT}")
    print(request.where(record))
    for gate in gates(settings):
        gate.enforce(settings, record)


def _check(request: Request) -> None:
    """ConfigError for settings that recorded outcomes cannot meet."""
    settings = request.settings
    if request.folder.sweep is not None:
        raise ConfigError("recorded outcomes are estimated in a single job: run it without -m")
    if settings.estimate.features != ["ir_score"]:
        raise ConfigError("estimate.features: of recorded outcomes ir_score alone is known")
    if settings.slices:
        raise ConfigError("slices: recorded outcomes have no attributes to slice by; leave slices out")
    for gate in gates(settings):
        gate.check_recorded(settings)
