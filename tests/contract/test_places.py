"""Errors of places that cannot be written, told with what chooses another; other errors are left alone."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ragauge.contract.errors import full_disk, not_writable, refused_file

PLACES = {"store=<folder>": "/data/store", "hydra.run.dir=<folder>": "/out"}


def denied(file: str, number: int = errno.EACCES) -> OSError:
    return OSError(number, "Permission denied", file)


@pytest.mark.parametrize(
    ("file", "chosen_by"),
    [
        ("/data/store", "store=<folder>"),
        ("/data/store/run/ab/frame.parquet", "store=<folder>"),
        ("/data", "store=<folder>"),
        ("/out/0/job.json", "hydra.run.dir=<folder>"),
        ("/elsewhere/file", None),
        ("/data/stores", None),
    ],
)
def test_a_place_that_refuses_is_named_with_what_chooses_another(file: str, chosen_by: str | None) -> None:
    said = f"{file}: cannot be written (permission denied); {chosen_by} chooses another place"
    assert not_writable(denied(file), PLACES) == (said if chosen_by else None)


def test_a_folder_that_is_not_there_counts_where_a_place_cannot_be_made() -> None:
    def absent(file: str) -> str | None:
        return not_writable(FileNotFoundError(errno.ENOENT, "No such file or directory", file), PLACES)

    assert str(absent("/data/store")).startswith("/data/store: cannot be written (no such file or directory); store=")
    assert str(absent("/data")).startswith("/data: ")
    assert absent("/data/store/run/ab") is None  # an entry that is not there is no place that cannot be written


def test_the_cause_of_an_error_counts_and_a_database_s_words() -> None:
    error = RuntimeError("job")
    error.__cause__ = denied("/out/x")
    assert str(not_writable(error, PLACES)).startswith("/out/x: cannot be written")
    words = RuntimeError("(sqlite3.OperationalError) attempt to write a readonly database")
    database = Path("/data/mlflow.db")
    assert not_writable(words, PLACES, database) == (
        "/data/mlflow.db: cannot be written (attempt to write a readonly database); tracking.uri or "
        "MLFLOW_TRACKING_URI chooses another place"
    )
    assert not_writable(words, PLACES) is None
    assert not_writable(RuntimeError("other"), PLACES, database) is None


def test_which_errors_are_of_a_file_that_is_not_ours(tmp_path: Path) -> None:
    assert refused_file(denied("x")) == Path("x").absolute()
    assert refused_file(denied(str(tmp_path), errno.EEXIST)) is None  # a folder that is there is no obstacle
    assert refused_file(denied(str(tmp_path / "file"), errno.EEXIST)) == tmp_path / "file"
    assert refused_file(denied("x", errno.EIO)) is None
    assert refused_file(ValueError("x")) is None
    assert full_disk(denied("x")) is None
    assert full_disk(denied("x", errno.ENOSPC)) is not None
