"""`ragauge ledger`: lists and forgets chosen calls of a real ledger."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from test_unreadable_judge import BAD, GOOD, jobs  # noqa: F401

from chat_server import ChatServer
from ragauge.contract.current_job import run_begins
from ragauge.contract.usage import Usage
from ragauge.llms.finished import UNREAD, Call
from ragauge.llms.ledger import Ledger
from ragauge.plugins.upkeep.ledger import main
from sweep_records import job_json


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Three calls of model a, one of them unreadable, and one of model b; jobs 1 and 11 of a sweep made two."""
    made = Ledger(tmp_path / "ledger.db")
    for n, (model, budget, unread, job) in enumerate(
        [("a", "s", None, None), ("a", "s", None, "11"), ("a", "s", 1.0, None), ("b", "t", None, "1")]
    ):
        request = json.dumps({"chat": {"model": model}, "messages": [["human", f"p{n}"]]})
        key = f"{n:048d}{UNREAD}1" if unread else f"{n:064d}"
        folder = job and str(tmp_path / "sweep" / job)
        made.add(
            Call(key, request, f"reply\n{n}", "stop", Usage(1, 1, 0.25, 0.1, 1), budget, unread_at=unread, job=folder)
        )
    for job in ("1", "11"):
        (tmp_path / "moved" / job).mkdir(parents=True)
    record = {"written_in": str(tmp_path / "sweep" / "1"), "ledgers": {"llm": str(tmp_path / "ledger.db")}}
    job_json(tmp_path / "moved" / "1", {**record, "status": "FAILED"})
    (tmp_path / "sweep" / "11").mkdir(parents=True)  # of a job that was killed
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAGAUGE_LEDGER", str(tmp_path / "ledger.db"))
    return made


@pytest.mark.parametrize(
    ("chosen", "left"),
    [
        (["--unreadable"], 3),
        (["--model", "a"], 1),
        (["--model", "a", "--unreadable"], 3),
        (["--model", "b", "--unreadable"], 4),
        (["--job", "moved/1"], 3),
        (["--job", "moved"], 2),
        (["--job", "sweep/11"], 3),
        (["--job", "moved/11"], 4),
        (["--after", "2020-01-01"], 0),
        (["--before", "2020-01-01T10:30"], 4),
        (["--after", "2120-01-01"], 4),
    ],
)
def test_chosen_calls_are_forgotten_with_yes_alone_and_stay_spent(
    chosen: list[str], left: int, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["forget", *chosen]) == 0
    assert f"nothing is forgotten: --yes forgets these {4 - left} call(s)" in capsys.readouterr().out
    assert len(ledger) == 4
    assert main(["forget", *chosen, "--yes"]) == 0
    assert len(ledger) == left
    assert (ledger.spent("s"), ledger.spent("t")) == (0.75, 0.25)


def test_what_chooses_nothing_or_names_nothing_is_refused(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["forget", "--yes"]) == 2
    assert "choose calls by --unreadable, --model, --job" in capsys.readouterr().err
    assert main(["ls", "--job", str(tmp_path / "none")]) == 2
    assert main(["ls", "--ledger", "nowhere.db"]) == 2
    assert not (tmp_path / "nowhere.db").exists()
    with pytest.raises(SystemExit):
        main(["ls", "--after", "yesterday"])


def test_the_calls_of_a_job_and_of_a_sweep_are_listed_by_its_folder(
    jobs: Any,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ChatServer(lambda prompt: BAD) as server:
        assert jobs(0, server, "max_missing_share=1")[0] == 4
        assert jobs(1, server, "max_missing_share=1")[0] == 4  # not run: the judge is that of job 0
        server.reply = lambda prompt: GOOD
        assert jobs(2, server, "judge.chat.model=other")[0] == 0
        run_begins()
        assert jobs(0, server)[0] == 0
    assert main(["ls", "--job", str(tmp_path / "sweep" / "0"), "--unreadable"]) == 0
    assert "unreadable     24" in capsys.readouterr().out
    assert main(["ls", "--job", str(tmp_path / "sweep" / "1")]) == 0
    assert "kept" not in capsys.readouterr().out  # it was not run
    assert main(["ls", "--job", str(tmp_path / "sweep")]) == 0
    assert len(re.findall(r"^(?:judge|other) +kept +12 ", capsys.readouterr().out, re.MULTILINE)) == 2
