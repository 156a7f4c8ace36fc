"""The files that jobs leave in their folders, and which of a sweep's jobs are of its latest attempt."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ragauge.contract.errors import DataError

RECORD_FILE = "job.json"


FRAMES_TAG = "ragauge.frames"  # of a job's MLflow run: where its frames lie
OUTCOMES_FILE = "outcomes.parquet"


DETAILS_FILE = "answer_details.parquet"  # what values of answer measures rest on, where any was kept


_ATTEMPT = ".attempt"  # in a sweep's folder: which attempt at the sweep is the latest


def begin_attempt(sweep: Path) -> None:
    """Notes in a sweep's folder that its jobs run again: their results replace those of earlier attempts."""
    with suppress(OSError):  # the jobs say why nothing can be written there
        sweep.mkdir(parents=True, exist_ok=True)
        (sweep / _ATTEMPT).write_text(uuid.uuid4().hex, encoding="utf-8")


def attempt_of(sweep: Path) -> str | None:
    """The latest attempt at the sweep in a folder; None where none was noted."""
    file = sweep / _ATTEMPT
    return file.read_text(encoding="utf-8") if file.is_file() else None


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The `job.json` of every job in a sweep's folder, by number; in a job's own folder of that job alone.

    `folder` of each is where it lies. Jobs of earlier attempts at the sweep are left out.
    """
    alone = folder / RECORD_FILE
    files = [alone] if alone.is_file() else folder.glob(f"*/{RECORD_FILE}")
    records = [{**json.loads(f.read_text(encoding="utf-8")), "folder": str(f.parent)} for f in files]
    if not alone.is_file() and (latest := attempt_of(folder)) is not None:
        records = [record for record in records if record.get("attempt") == latest]
    return sorted(records, key=lambda record: record["number"])


def refuse_trainings(records: Iterable[Mapping[str, Any]], folder: Path) -> None:
    """DataError where one of the records in the folder is that of a training, which has no outcomes."""
    if any(record.get("role") == "training" for record in records):
        raise DataError(f"{folder} holds trainings, which have no outcomes: give the folder of jobs")
