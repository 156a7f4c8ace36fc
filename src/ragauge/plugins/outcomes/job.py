"""A job of recorded outcomes: makes and logs the estimates, without retrieving, answering or judging."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ragauge import track
from ragauge.contract.errors import ConfigError
from ragauge.contract.interruption import refuse_lost
from ragauge.contract.loading import build
from ragauge.contract.record import JobRecord
from ragauge.experiment.described import last_place
from ragauge.experiment.folder import JobFolder
from ragauge.experiment.gates import gates
from ragauge.experiment.request import first_tags, write_config
from ragauge.experiment.setup.config import check_values
from ragauge.experiment.stages.stage import file_digest
from ragauge.plugins.outcomes.dataset import RecordedOutcomes
from ragauge.plugins.outcomes.finding import REPORT, Recorded
from ragauge.track import views

if TYPE_CHECKING:
    from omegaconf import DictConfig


def run_recorded(cfg: DictConfig, folder: JobFolder, record: JobRecord) -> None:
    """Logs the estimates of recorded outcomes as an MLflow run with metrics, tables, figures and a report."""
    from omegaconf import OmegaConf

    start = time.perf_counter()
    plain: Any = OmegaConf.to_container(cfg, resolve=True)
    _check(cfg, plain, folder)
    source: RecordedOutcomes = build("dataset", plain["dataset"], {})
    file = source.files()["outcomes"]
    digest = file_digest(file)
    if cfg.dry_run:
        record.status = "DRY RUN"
        print(f"{record.name:<32} no LLM calls")
        return
    value = Recorded.of(source.outcomes(plain["cluster"]), source.judged_shares, record, file)
    tracker = track.Tracker(track.tracking_uri(cfg.tracking.uri), record.experiment)
    opened = (record.name, track.flatten(plain), first_tags(cfg, folder), cfg.tracking.note)
    compared: list[str] = []
    with tracker.run(*opened, folder.ended_run) as run:
        record.run_id, record.experiment_id, record.dataset_digest = run.run_id, run.experiment_id, digest
        refuse_lost()
        run.tag({"dataset_digest": digest})
        found = value.found(record.experiment, cfg.tracking.note or "")
        track.log_found(run, found)
        found.files[REPORT](folder.path / REPORT)
        (run.folder / "config").mkdir()
        write_config(cfg, folder, run.folder / "config")
        times = {"seconds_total": time.perf_counter() - start}
        run.metrics(times)
        if folder.origin:
            compared = folder.origin.compared(tracker, run)
        record.metrics = {**found.metrics, **times}
    tracker.present([views.jobs_view()], views.description(record.experiment_id), replace=False)
    record.status = "FINISHED"
    print(*value.lines, *compared, sep="\n")
    print(f"report: {folder.path / REPORT}")
    print(last_place(cfg, folder, record))
    for gate in gates(cfg):
        gate.enforce(cfg, record)


def _check(cfg: DictConfig, plain: Any, folder: JobFolder) -> None:
    """ConfigError for settings that recorded outcomes cannot meet."""
    check_values(cfg)
    if folder.sweep is not None:
        raise ConfigError("recorded outcomes are estimated in a single job: run it without -m")
    if plain["estimate"]["features"] != ["ir_score"]:
        raise ConfigError("estimate.features: of recorded outcomes ir_score alone is known")
    if plain["slices"]:
        raise ConfigError("slices: recorded outcomes have no attributes to slice by; leave slices out")
    for gate in gates(cfg):
        gate.check_recorded(cfg)
