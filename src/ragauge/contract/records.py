"""Names of the files that a job leaves in its folder, and what they say of a folder that is no job's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ragauge.contract.errors import DataError

RECORD_FILE = "job.json"


RERUN_FILE = "rerun.json"  # in a configuration folder: the logged jobs that it runs again


OUTCOMES_FILE = "outcomes.parquet"


DETAILS_FILE = "answer_details.parquet"  # what values of answer measures rest on, where any was kept


def refuse_trainings(records: Iterable[Mapping[str, Any]], folder: Path) -> None:
    """DataError where one of the records in the folder is that of a training, which has no outcomes."""
    if any(record.get("role") == "training" for record in records):
        raise DataError(f"{folder} holds trainings, which have no outcomes: give the folder of jobs")
