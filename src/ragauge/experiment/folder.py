"""A job's folder: how the job was asked for, and the JSON that it leaves there."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge.contract.interruption import CODES
from ragauge.contract.records import RECORD_FILE
from ragauge.contract.redact import redact_tree

if TYPE_CHECKING:
    from ragauge.experiment.rerun.plan import Origin


@dataclass(frozen=True)
class JobFolder:
    """Where a job writes and how it was asked for: what Hydra knows of it, in plain values."""

    path: Path
    sweep: Path | None
    number: int
    choices: Mapping[str, str]
    overrides: tuple[str, ...]
    origin: Origin | None = None  # where the job is a rerun

    @property
    def sweep_id(self) -> str | None:
        """One id for all jobs of a sweep, from its folder's date, time and place; None for a single job."""
        if self.sweep is None:
            return None
        place = hashlib.sha256(str(self.sweep).encode()).hexdigest()[:6]
        return f"{self.sweep.parent.name}_{self.sweep.name}_{place}"

    @property
    def tags(self) -> dict[str, Any]:
        """The tags by which the attempts at a job of a sweep know each other; none for a single job."""
        return {} if self.sweep is None else {"sweep_id": self.sweep_id, "job": self.number}

    @property
    def ended_run(self) -> str | None:
        """The id of the MLflow run on the record of an attempt at the job that was not interrupted."""
        try:
            record = json.loads((self.path / RECORD_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return None if record.get("exit_code") in CODES else record.get("run_id")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a JSON file without secrets, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(redact_tree(value), indent=1, ensure_ascii=False, default=float), encoding="utf-8")
    os.replace(draft, path)
