"""Which records of a folder count: those of the latest attempt at its sweep."""

from __future__ import annotations

import json
from pathlib import Path

from ragauge.contract.records import attempt_of, begin_attempt, read_records


def write(folder: Path, number: int, attempt: str | None) -> None:
    job = folder / str(number)
    job.mkdir(parents=True, exist_ok=True)
    (job / "job.json").write_text(json.dumps({"number": number, "attempt": attempt}), encoding="utf-8")


def numbers(folder: Path) -> list[int]:
    return [record["number"] for record in read_records(folder)]


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
    assert record["folder"] == str(tmp_path / "3")


def test_where_no_attempt_was_noted_all_jobs_count(tmp_path: Path) -> None:
    for number in (0, 1):
        write(tmp_path, number, None)
    assert numbers(tmp_path) == [0, 1]
    assert numbers(tmp_path / "nowhere") == []
