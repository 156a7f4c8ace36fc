"""What is written down of a draft, and files that cannot be written."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.plugins.synthesis.documents import drawn
from ragauge.plugins.synthesis.drafts import Draft, Span, Written
from ragauge.plugins.synthesis.records import Files, Provenance, checked_files, record, write, write_text
from ragauge.plugins.synthesis.rounds import Result
from ragauge.plugins.synthesis.settings import Settings
from ragauge.plugins.synthesis.units import Unit

TEXTS = {"north/a": "The bridge of Linz was built in 1711.", "south/b": "The bridge of Graz is older by far."}
DOCUMENTS = drawn(
    pd.DataFrame({"docno": list(TEXTS), "title": "", "text": list(TEXTS.values())}).astype("str"), "folder", 0
)
OF = Provenance("a model", 3, False, "1.0")


def both(number: int, **given: object) -> Draft:
    """A question of two documents, with evidence in the first."""
    unit = Unit("two_hop", ("north/a", "south/b"), "Linz")
    found = Draft(number, unit, tuple(TEXTS.values()), "the prompt", Written("Which is older?", "Graz"))
    found.spans = (Span("north/a", 4, 18, "bridge of Linz"),)
    for name, value in given.items():
        setattr(found, name, value)
    return found


def test_the_record_of_an_accepted_draft_by_hand() -> None:
    digest = hashlib.sha256(b"north/a\nsouth/b\nWhich is older?").hexdigest()
    assert record(both(7, results={"follows": "passed"}), DOCUMENTS, OF) == {
        "qid": f"two_hop-{digest[:10]}",
        "query": "Which is older?",
        "answer": "Graz",
        "evidence": [{"docno": "north/a", "text": "bridge of Linz", "start": 4, "end": 18}],
        "kind": "two_hop",
        "stand_in": False,
        "provenance": {
            "model": "a model",
            "prompt_sha256": hashlib.sha256(b"the prompt").hexdigest(),
            "seed": 3,
            "ragauge": "1.0",
            "draft": 7,
            "documents": ["north/a", "south/b"],
            "shared": "Linz",
            "strata": {"folder": ["north", "south"]},
            "filters": {"follows": "passed"},
        },
    }


def test_the_record_of_a_rejected_draft_says_by_what_and_what_was_given() -> None:
    lost = Written("Which?", "Graz", ((0, "A bridge of wood stands there."), (1, "It is old.")))
    found = record(both(1, written=lost, spans=(), rejected_by="evidence"), DOCUMENTS, OF)
    assert (found["rejected_by"], found["evidence"]) == ("evidence", [])
    assert found["evidence_given"] == ["A bridge of wood stands there.", "It is old."]
    assert "raw" not in found
    unread = both(2, written=None, spans=(), rejected_by="unreadable", raw="Well, ...", prompt=None)
    found = record(unread, DOCUMENTS, OF)
    assert (found["rejected_by"], found["raw"]) == ("unreadable", "Well, ...")
    assert not {"query", "answer", "evidence_given"} & set(found)
    assert found["provenance"]["prompt_sha256"] is None
    struck = record(both(3, rejected_by="follows"), DOCUMENTS, OF)
    assert struck["rejected_by"] == "follows"
    assert "evidence_given" not in struck
    open_one = Draft(4, Unit("unanswerable", ("north/a",)), ("",), written=Written("Why?"))
    found = record(open_one, DOCUMENTS, OF)
    assert found["unanswerable"] is True
    assert not {"answer", "rejected_by", "shared"} & (set(found) | set(found["provenance"]))


def test_files_are_written_into_folders_that_are_made_and_those_of_a_run_before_are_removed(
    tmp_path: Path,
) -> None:
    files = Files(tmp_path / "new" / "deep" / "questions.jsonl")
    good, bad = both(0), both(1, rejected_by="follows")
    written = write(Result(Settings(2), [good, bad]), DOCUMENTS, files, OF)
    assert written == [files.rejected, files.questions, files.sheet]
    [kept] = files.questions.read_text(encoding="utf-8").splitlines()
    assert json.loads(kept) == record(good, DOCUMENTS, OF)
    [struck] = files.rejected.read_text(encoding="utf-8").splitlines()
    assert json.loads(struck) == record(bad, DOCUMENTS, OF)
    assert write(Result(Settings(2), [bad]), DOCUMENTS, files, OF) == [files.rejected]
    assert [file.name for file in files.questions.parent.iterdir()] == ["questions.rejected.jsonl"]


@pytest.mark.parametrize("name", ["q.jsonl", "q.rejected.jsonl", "q.sheet.csv"])
def test_files_that_are_there_are_refused_unless_they_may_be_overwritten(name: str, tmp_path: Path) -> None:
    out = str(tmp_path / "q.jsonl")
    (tmp_path / name).write_text("", encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        checked_files(out, overwrite=False)
    assert str(raised.value) == f"out={out}: {tmp_path / name} is there; overwrite=true writes it again"
    assert checked_files(out, overwrite=True) == Files(tmp_path / "q.jsonl")
    (tmp_path / name).unlink()
    assert checked_files(out, overwrite=False) == Files(tmp_path / "q.jsonl")
    (tmp_path / name).mkdir()
    with pytest.raises(ConfigError) as raised:
        checked_files(out, overwrite=True)
    assert str(raised.value) == f"out={out}: {tmp_path / name} is a folder"


def test_a_folder_that_nothing_can_be_written_into_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"q\.jsonl cannot be written: .*file: (File exists|Not a directory)"):
        checked_files(str(tmp_path / "file" / "q.jsonl"), overwrite=False)
    asked = []

    def access(path: Path, mode: int) -> bool:
        asked.append((path, mode))
        return False

    monkeypatch.setattr(os, "access", access)
    file = tmp_path / "q.jsonl"
    for step in (lambda: checked_files(str(file), overwrite=False), lambda: write_text(file, "text")):
        with pytest.raises(ConfigError) as raised:
            step()
        assert str(raised.value) == f"{file} cannot be written: no right to write into its folder"
    assert asked == [(tmp_path, os.W_OK)] * 2
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
