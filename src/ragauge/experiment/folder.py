"""A job's folder: the request for the job, and its JSON files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge.contract.current_job import of_this_run
from ragauge.contract.errors import DataError, MissingError, UnreadableJudgeError
from ragauge.contract.interruption import CODES
from ragauge.contract.job_files import attempt_of
from ragauge.contract.output_files import write_json
from ragauge.contract.record import RECORD_FILE, Record

if TYPE_CHECKING:
    from ragauge.experiment.arguments import Origin


@dataclass(frozen=True)
class JobFolder:
    """A job's folder and its request, from Hydra, in plain values."""

    path: Path
    sweep: Path | None
    number: int
    choices: Mapping[str, str]
    overrides: tuple[str, ...]
    origin: Origin | None = None  # such as the job that it repeats

    @property
    def sweep_id(self) -> str | None:
        """The common id of a sweep's jobs, from its folder's date, time and path; None for a single job."""
        if self.sweep is None:
            return None
        place = hashlib.sha256(os.fsencode(self.sweep)).hexdigest()[:6]
        return f"{self.sweep.parent.name}_{self.sweep.name}_{place}"

    @property
    def attempt(self) -> str | None:
        """The job's attempt at its sweep; None for a single job."""
        return None if self.sweep is None else attempt_of(self.sweep)

    @property
    def tags(self) -> dict[str, Any]:
        """The tags that link the attempts at a job of a sweep; none for a single job."""
        return {} if self.sweep is None else {"sweep_id": self.sweep_id, "job": self.number}

    @property
    def ended_run(self) -> str | None:
        """The MLflow run id on the record of an uninterrupted attempt at the job."""
        try:
            record = Record.read(self.path / RECORD_FILE)
        except DataError:
            return None
        return None if record.exit_code in CODES else record.run_id or None


@dataclass(frozen=True)
class UnreadableJudge:
    """A note in a sweep's folder that stops its jobs from asking an unreadable judge.

    judge: the config of the judge. A note of an earlier attempt at the sweep does not count.
    """

    folder: JobFolder
    judge: Mapping[str, Any]

    @property
    def _path(self) -> Path | None:
        name = hashlib.sha256(json.dumps(self.judge, sort_keys=True).encode()).hexdigest()[:8]
        return self.folder.sweep and self.folder.sweep / f"unreadable_judge_{name}.json"

    def leave(self, error: UnreadableJudgeError) -> None:
        """Writes the note for the sweep's other jobs; nothing for a single job."""
        if self._path is not None:
            write_json(self._path, {"job": self.folder.number, "error": str(error)})

    def refuse(self) -> None:
        """MissingError if another job of this attempt left the note."""
        try:
            if self._path is None or not of_this_run(self._path.stat().st_mtime):
                return
            note = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        raise MissingError(
            f"not run, and nothing was asked: of job {note['job']}, which has the same judge, {note['error']}"
        )
