"""The sheet for people: what a spreadsheet makes of it, and what is taken from it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from ragauge.plugins.synthesis.command import main
from ragauge.plugins.synthesis.records import sheet_text


def record(qid: str, question: str, **more: Any) -> dict[str, Any]:
    return {
        "qid": qid, "query": question, "answer": "=1+1", "evidence": [{"text": "@SUM(A1)\nline"}],
        "kind": "one_hop", "stand_in": False,
        "provenance": {"documents": ["d/1"], "filters": {"round_trip_rank": 2}}, **more,
    }  # fmt: skip


RECORDS = [record("q1", "Who?"), record("q2", "=HYPERLINK(1)"), record("q3", "Three?\nOr four?")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in RECORDS), "utf-8")
    (tmp_path / "sheet.csv").write_text(sheet_text(RECORDS), "utf-8")
    return tmp_path


def fill(folder: Path, delimiter: str = ",", encoding: str = "utf-8", **decisions: tuple[str, str]) -> None:
    with (folder / "sheet.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        row["decision"], row["comment"] = decisions.get(row["qid"], ("", ""))
    with (folder / "sheet.csv").open("w", encoding=encoding, newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def apply(*more: str) -> int:
    return main(["sheet=sheet.csv", "questions=questions.jsonl", "out=reviewed.jsonl", *more])


def test_no_cell_of_the_sheet_is_a_formula_and_each_question_is_one_line(folder: Path) -> None:
    lines = (folder / "sheet.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 4
    for row in csv.reader(lines[1:]):
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row)
    assert lines[0].endswith("decision,comment")


@pytest.mark.parametrize(("delimiter", "encoding"), [(",", "utf-8"), (";", "utf-8-sig"), ("\t", "utf-8")])
def test_the_accepted_questions_are_kept_as_they_stand(
    delimiter: str,
    encoding: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    decided = {"q1": ("reject", "dull"), "q2": (" Accept ", 'gut; "so"')}
    fill(folder, delimiter, encoding, **decided)
    assert apply() == 0
    [kept] = [json.loads(line) for line in (folder / "reviewed.jsonl").read_text("utf-8").splitlines()]
    assert kept.pop("review") == {"decision": "accept", "comment": 'gut; "so"'}
    assert kept == RECORDS[1]
    assert capsys.readouterr().out == ("reviewed.jsonl: 1 questions accepted, 1 rejected, 1 without a decision\n")
    assert not caplog.records  # no wording has changed
    assert apply() == 2
    assert apply("overwrite=true") == 0


@pytest.mark.parametrize(
    ("decided", "message"),
    [
        (
            {"q1": ("maybe", "")},
            "sheet.csv, row 1, qid 'q1': decision is 'maybe'; allowed are accept, reject",
        ),
        ({}, "sheet.csv: it accepts no question; the column 'decision' takes accept and reject"),
    ],
    ids=["a decision that is none", "no decision"],
)
def test_a_sheet_that_cannot_be_applied_gets_one_line(
    decided: dict, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(folder, **decided)
    assert apply() == 2
    [line] = capsys.readouterr().err.splitlines()
    assert message in line
    assert not (folder / "reviewed.jsonl").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "sheet.csv: the file is empty; its first line must name the columns"),
        ("qid,comment\nq1,x\n", "column 'decision' is missing; it has qid, comment"),
        ("qid,decision\nq9,accept\n", "row 1: qid 'q9' is no question of the file"),
        ("qid,decision\nq1,accept\nq1,reject\n", "row 2: qid 'q1' stands twice"),
    ],
    ids=["empty", "no decision", "another file's", "twice"],
)
def test_another_sheet_gets_one_line(text: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sheet.csv").write_text(text, "utf-8")
    assert apply() == 2
    [line] = capsys.readouterr().err.splitlines()
    assert message in line


def test_changed_wording_is_told_and_the_files_text_is_kept(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(folder, q1=("accept", ""), q2=("accept", ""))
    text = (folder / "sheet.csv").read_text("utf-8")
    (folder / "sheet.csv").write_text(text.replace("Who?", "Who was it?"), "utf-8")
    assert apply() == 0
    assert "1 rows have another question than the file" in caplog.text
    assert '"Who?"' in (folder / "reviewed.jsonl").read_text("utf-8")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["sheet=no.csv", "questions=questions.jsonl", "out=r.jsonl"], "sheet=no.csv: there is no such file"),
        (["sheet=sheet.csv", "out=r.jsonl"], "sheet=sheet.csv: give questions="),
        (["sheet=sheet.csv", "questions=questions.jsonl"], "out is not set"),
        (
            ["sheet=sheet.csv", "questions=questions.jsonl", "out=questions.jsonl"],
            "is the file of questions itself",
        ),
        (["questions=questions.jsonl", "out=r.jsonl"], "questions=questions.jsonl: is read with a sheet"),
    ],
    ids=range(5),
)
def test_paths_that_cannot_be_used_get_one_line(
    given: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(given) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert message in line
