"""Runs one job: from a composed config to an MLflow run and a record in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ragauge import track
from ragauge.contract.current_job import working_on
from ragauge.contract.datasets import Source
from ragauge.contract.errors import UnreadableJudgeError
from ragauge.contract.loading import class_of, locate
from ragauge.contract.record import JobRecord
from ragauge.contract.redact import remember
from ragauge.experiment.folder import JobFolder, UnreadableJudge
from ragauge.experiment.guard import OUTPUT, STORE, guarded
from ragauge.experiment.measuring import measure, pin_window
from ragauge.experiment.request import first_record, used_places
from ragauge.experiment.setup.config import settle


def execute(cfg: DictConfig, folder: JobFolder) -> int:
    """Runs the job and returns its exit code; prints a failure and records it in MLflow and in `job.json`."""
    settle(cfg)
    record = first_record(cfg, folder)

    def work() -> None:
        record.take(used_places(cfg))
        try:
            with working_on(folder.path):
                _run(cfg, folder, record)
        except UnreadableJudgeError as error:
            _unreadable_judge(cfg, folder).leave(error)
            raise

    places: dict[str, str | Path] = {STORE: str(cfg.store), OUTPUT: folder.path}
    return guarded(record, work, places, lambda: _database(record))


def _run(cfg: DictConfig, folder: JobFolder, record: JobRecord) -> None:
    remember(OmegaConf.to_container(cfg, resolve=True))
    record.snapshot = pin_window(cfg, folder)
    source = class_of("dataset", cfg.dataset.get("_target_"), Source)
    if source is not None and source.run_job:
        locate("dataset.run_job", source.run_job)(cfg, folder, record)
    elif cfg.dry_run:
        from ragauge.experiment.prepared import dry_run

        dry_run(cfg, folder, record)
    else:
        _unreadable_judge(cfg, folder).refuse()
        measure(cfg, folder, record)


def _database(record: JobRecord) -> Path | None:
    """MLflow's database; None for a server, or if the job ended before it was known."""
    return track.local_database(record.tracking_uri) if record.tracking_uri else None


def _unreadable_judge(cfg: DictConfig, folder: JobFolder) -> UnreadableJudge:
    judge: Any = OmegaConf.to_container(cfg.judge, resolve=True)
    return UnreadableJudge(folder, judge)
