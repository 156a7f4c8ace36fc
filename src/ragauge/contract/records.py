"""Reads and writes jobs' files in their folders, and selects a sweep's latest attempt."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge.contract.errors import DataError
from ragauge.contract.output_files import replacing
from ragauge.contract.plain_files import NotPlain, open_plain, read_json_object

if TYPE_CHECKING:
    import pandas as pd

RECORD_FILE = "job.json"


FRAMES_TAG = "ragauge.frames"  # of a job's MLflow run: where its frames lie
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


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The `job.json` of every job in a sweep's folder, by number, or the one in a job's folder.

    `folder` of each is where it lies. Jobs of earlier attempts at the sweep are left out. DataError for a record that
    no job wrote: the folder may be a colleague's.
    """
    alone = folder / RECORD_FILE
    files = [alone] if alone.is_file() else sorted(folder.glob(f"*/{RECORD_FILE}"))
    records = [read_record(file) for file in files]
    for record in records:
        require_fields(record, ["number"])
    if not alone.is_file() and (latest := attempt_of(folder)) is not None:
        records = [record for record in records if record.get("attempt") == latest]
    return sorted(records, key=lambda record: record["number"])


def read_record(file: Path) -> dict[str, Any]:
    """The content of a `job.json`, with its `folder`; DataError for any other content."""
    try:
        record = read_json_object(file)
    except ValueError as error:
        raise DataError(f"{file}: {error}") from None
    except NotPlain as error:
        raise DataError(str(error)) from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from None
    for name, (allowed, fits) in _FIELDS.items():
        if name in record and not fits(record[name]):
            raise DataError(f"{file}: {name}={_shown(record[name])}: allowed is {allowed}")
    return {**record, "folder": str(file.parent)}


def require_fields(record: Mapping[str, Any], names: Iterable[str]) -> None:
    """DataError if a job's record lacks a field."""
    for name in names:
        if name not in record:
            raise DataError(f"{Path(record.get('folder', '.')) / RECORD_FILE}: {name} is missing")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST


def _is_number(value: Any) -> bool:
    return _is_whole(value) or isinstance(value, float)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not _SURROGATE.search(value)


def _is_place(value: Any) -> bool:
    return _is_text(value) and "\0" not in value


def _maps(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(fits, value.values()))


def _lists(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


_LONGEST_SHOWN = 60  # characters of a value in a message
_LARGEST = 2**53
_SURROGATE = re.compile("[\ud800-\udfff]")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_TEXT = ("a text", _is_text)
_PLACE = ("a path or an address", _is_place)
_WHOLE = ("a whole number", _is_whole)
_TEXTS = ("an object of texts", _maps(_is_text))
_NUMBERS = ("an object of numbers", _maps(lambda value: isinstance(value, (bool, type(None))) or _is_number(value)))
_OBJECT = ("an object", lambda value: isinstance(value, dict))
# What a field of a record must be where it is there.
_FIELDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("status", "name", "experiment", "error", "role", "dataset_digest"), _TEXT),
    **dict.fromkeys(("written_in", "directory", "store", "tracking_uri"), _PLACE),
    **dict.fromkeys(("number", "n_tokens", "seed", "bootstrap", "exit_code"), _WHOLE),
    **dict.fromkeys(("choices", "rankings"), _TEXTS),
    "ledgers": ("an object of paths and addresses", _maps(_is_place)),
    **dict.fromkeys(("metrics", "ir_score_at_n", "ir_score_floor_at_n"), _NUMBERS),
    **dict.fromkeys(("estimate", "zones", "foresight", "report", "settings", "dataset"), _OBJECT),
    "overrides": ("a list of texts", _lists(_is_text)),
    "answer_measures": ("a list of objects", _lists(_OBJECT[1])),
    "run_id": ("the id of an MLflow run", lambda value: _is_text(value) and value.isalnum()),
    **dict.fromkeys(("sweep_id", "attempt"), ("a text or null", lambda value: value is None or _is_text(value))),
    "entries": (
        "an object of digests of store entries",
        _maps(lambda value: isinstance(value, str) and bool(_DIGEST.fullmatch(value))),
    ),
}  # fmt: skip


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


def refuse_trainings(records: Iterable[Mapping[str, Any]], folder: Path) -> None:
    """DataError if a record in the folder is of a training, which has no outcomes."""
    if any(record.get("role") == "training" for record in records):
        raise DataError(f"{folder} holds trainings, which have no outcomes: give the folder of jobs")
