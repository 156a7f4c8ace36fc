"""Which records of a folder count: those of the latest attempt at its sweep."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragauge.contract.errors import DataError
from ragauge.contract.job_files import attempt_of, begin_attempt, read_records, read_table
from ragauge.contract.record import JobRecord
from sweep_records import job_json


def write(folder: Path, number: int, attempt: str | None) -> None:
    job_json(folder / str(number), {"number": number, "attempt": attempt})


def numbers(folder: Path) -> list[int]:
    return [record.number for record in read_records(folder)]


def test_jobs_of_an_earlier_attempt_do_not_count(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    assert attempt_of(sweep) is None
    begin_attempt(sweep)
    for number in (10, 2, 1):
        write(sweep, number, attempt_of(sweep))
    assert numbers(sweep) == [1, 2, 10]
    begin_attempt(sweep)
    assert numbers(sweep) == []
    write(sweep, 1, attempt_of(sweep))
    assert numbers(sweep) == [1]


def test_the_folder_of_a_job_holds_that_job_whatever_the_attempt(tmp_path: Path) -> None:
    begin_attempt(tmp_path)
    write(tmp_path, 3, "an earlier one")
    assert numbers(tmp_path / "3") == [3]
    [record] = read_records(tmp_path / "3")
    assert record.folder == tmp_path / "3"


def test_where_no_attempt_was_noted_all_jobs_count(tmp_path: Path) -> None:
    for number in (0, 1):
        write(tmp_path, number, None)
    assert numbers(tmp_path) == [0, 1]
    assert numbers(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("null", "it must be a JSON object, not null"),
        ("[" * 100_000, "it is nested deeper than 100 levels"),
        ('{"number": ' + "9" * 5000 + "}", "a number in it has too many digits"),
        ('{"number": ' + "9" * 50 + "}", "allowed is a whole number"),
        ('{"number": 0, "run_id": []}', "run_id=[]: allowed is the id of an MLflow run"),
        ('{"number": 0, "run_id": null}', "run_id=None: allowed is the id of an MLflow run"),
        ('{"number": 0, "run_id": 5}', "run_id=5: allowed is the id of an MLflow run"),
        ('{"number": 0, "tracking_uri": null}', "tracking_uri=None: allowed is a path or an address"),
        ('{"number": 0, "store": "a\\u0000b"}', "allowed is a path or an address"),
        ('{"number": 0, "entries": {"run": "../../x"}}', "allowed is an object of digests of store entries"),
        ('{"name": "a"}', "number is missing"),
    ],
)
def test_a_record_that_no_job_wrote_is_an_error_of_one_line(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "job.json").write_text(text)
    with pytest.raises(DataError) as error:
        read_records(tmp_path)
    assert str(error.value).startswith(f"{tmp_path / 'job.json'}: ")
    assert told in str(error.value)
    assert len(str(error.value)) < 300 + len(str(tmp_path))


def test_a_record_or_a_table_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "0")
    for read in (lambda: JobRecord.read(tmp_path / "0"), lambda: read_table(tmp_path, "0")):
        with pytest.raises(DataError, match="0 is a pipe, not a plain file"):
            read()
