"""Reads and writes jobs' files in their folders, and selects a sweep's latest attempt."""

from __future__ import annotations

import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ragauge.contract.errors import DataError
from ragauge.contract.output_files import replacing
from ragauge.contract.plain_files import NotPlain, open_plain
from ragauge.contract.record import RECORD_FILE, JobRecord, Record

if TYPE_CHECKING:
    import pandas as pd

R = TypeVar("R", bound=Record)


FRAMES_TAG = "ragauge.frames"  # of a job's MLflow run: where its frames lie
OUTSIDE_TAG = "ragauge.outside"  # of the run: the groups whose work another system did
OUTCOMES_FILE = "outcomes.parquet"


DETAILS_FILE = "answer_details.parquet"  # what values of answer measures rest on, where any was kept


_ATTEMPT = ".attempt"  # in a sweep's folder: which attempt at the sweep is the latest


def begin_attempt(sweep: Path) -> None:
    """Records a new attempt in a sweep's folder; its results replace those of earlier ones."""
    with suppress(OSError):  # the jobs say why nothing can be written there
        sweep.mkdir(parents=True, exist_ok=True)
        with replacing(sweep / _ATTEMPT) as draft:
            draft.write_text(uuid.uuid4().hex, encoding="utf-8")


def attempt_of(sweep: Path) -> str | None:
    """The latest attempt at the sweep in a folder; None without a record of one."""
    file = sweep / _ATTEMPT
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None


def read_records(folder: Path, kind: type[R] = JobRecord) -> list[R]:  # type: ignore[assignment]
    """The records of the jobs in a sweep's folder, by number, or the one in a job's folder.

    Jobs of earlier attempts at the sweep are left out. DataError for a record that no job of this kind wrote.
    """
    alone = folder / RECORD_FILE
    files = [alone] if alone.is_file() else sorted(folder.glob(f"*/{RECORD_FILE}"))
    records = [kind.read(file) for file in files]
    if not alone.is_file() and (latest := attempt_of(folder)) is not None:
        records = [record for record in records if record.attempt == latest]
    return sorted(records, key=lambda record: record.number)


def read_table(folder: Path, name: str, filters: list[tuple[str, str, list[str]]] | None = None) -> pd.DataFrame:
    """A frame in a job's folder, or its rows that pass the filters.

    FileNotFoundError where there is none, DataError where it is no plain file or no Parquet.
    """
    import pandas as pd  # here: the help of commands does without
    import pyarrow as pa

    file = folder / name
    try:
        with open_plain(file) as stream:
            return pd.read_parquet(stream, filters=filters)
    except FileNotFoundError:
        raise
    except NotPlain as error:
        raise DataError(str(error)) from None
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{file}: cannot be read as Parquet: {error}") from None
