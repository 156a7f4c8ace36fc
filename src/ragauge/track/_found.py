"""What a finding found, written into an MLflow run: of a job and of a sweep alike."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragauge.contract.finding import Found
from ragauge.contract.visible import csv_text
from ragauge.track._models import save_predictor
from ragauge.track._runs import Run


def log_found(
    run: Run, found: Found, settings: Mapping[str, Any] | None = None, registered_name: str | None = None
) -> None:
    """Logs metrics with their charts, tables, files and the model of one finding.

    settings: what the scores mean to a model that is no folder yet; registered_name: of the model in MLflow's
    registry.
    """
    run.metrics(found.metrics, found.steps)
    run.days(found.days)
    for name, frame in found.logged.items():
        run.table(frame, f"{name}.json")
    for name, frame in found.tables.items():
        _path(run, f"tables/{name}.csv").write_text(csv_text(frame), encoding="utf-8", newline="")
    for name, write in found.files.items():
        write(_path(run, name))
    if isinstance(found.model, Path):
        run.predictor(found.model, registered_name)
    elif found.model is not None:
        model, example = found.model
        with tempfile.TemporaryDirectory() as scratch:
            saved = Path(scratch) / "model"
            save_predictor(saved, model, example, settings or {})
            run.predictor(saved, registered_name)


def _path(run: Run, artifact: str) -> Path:
    """Where an artifact is written before it is in MLflow."""
    path = run.folder / artifact
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
