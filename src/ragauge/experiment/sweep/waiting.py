"""Jobs of a sweep that wait for verdicts, restored from their records."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, chdir, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge import track
from ragauge.contract.errors import DataError
from ragauge.contract.record import JobRecord
from ragauge.contract.redact import remember
from ragauge.experiment.dry_run import needs_of_judging
from ragauge.experiment.measured import MeasuredJob
from ragauge.experiment.need_sums import gathered
from ragauge.experiment.request import JobFolder, Request
from ragauge.experiment.stages.checks import check_measures
from ragauge.experiment.stages.components import make_pipeline
from ragauge.store import canonical_json
from ragauge.store.vectors import nothing_computed


def started_from(records: Sequence[JobRecord]) -> AbstractContextManager[None]:
    """Resolves relative data paths against the jobs' starting directory within the block."""
    directory = Path(records[0].directory)
    return chdir(directory) if directory.is_dir() else nullcontext()


def waiting_job(record: JobRecord) -> MeasuredJob:
    """A finished job, restored from its record.

    Uses the job's own store, ledgers and MLflow, in any directory and environment.
    """
    from omegaconf import OmegaConf

    path = record.folder
    cfg: Any = OmegaConf.load(path / ".hydra" / "config.yaml")
    if not Path(record.store).is_dir():
        raise DataError(f"{record.name} waits for its verdicts, but the store that it used is gone: {record.store}")
    cfg.store = record.store
    cfg.tracking.uri = track.recorded_uri(record.tracking_uri)
    for part, ledger in record.ledgers.items():
        if "ledger" in cfg[part] and "***" not in ledger:
            cfg[part].ledger = ledger
    if record.snapshot:  # the window of traces may have moved since
        cfg.dataset.snapshot = record.snapshot
    remember(OmegaConf.to_container(cfg, resolve=True))
    folder = JobFolder(path, path.parent, record.number, record.choices, tuple(record.overrides))
    request = Request(cfg, folder)
    pipeline = make_pipeline(request)
    check_measures(pipeline, alone=False)
    return MeasuredJob(pipeline, request, record)


def needs_together(records: Sequence[JobRecord]) -> pd.DataFrame:
    """The requests of judging the jobs of a dry run together (see ragauge.experiment.dry_run)."""
    later = [record for record in records if record.judged_later]
    if not later:
        return gathered([])
    with started_from(later), nothing_computed():
        groups: dict[str, list[MeasuredJob]] = {}
        for job in map(waiting_job, later):
            groups.setdefault(judged_alike(job), []).append(job)
        return gathered([frame for jobs in groups.values() for frame in needs_of_judging(jobs)])


def judged_alike(job: MeasuredJob) -> str:
    """A text that is equal for jobs judged together: those with the same judge, sample and dataset."""
    pipeline = job.pipeline
    sample = [None if one is None else asdict(one) for one in (pipeline.sample, pipeline.answered)]
    judge = pipeline.identity_of(pipeline.components.judge)
    return canonical_json([judge, pipeline.entry("dataset").digest, sample, job.settings.predictor])
