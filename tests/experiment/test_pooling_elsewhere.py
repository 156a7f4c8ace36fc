"""A sweep's folder pooled from another place: it writes nowhere unasked, and nothing is paid again."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_chat_sweep import KEY, reply
from test_chat_sweep import sweep as chat_sweep
from test_sweep import SMALL, job_records, mlflow_runs, sweep_folders

from chat_server import ChatServer
from processes import clean_environment, run
from ragauge.commands.results import pool as pool_command
from ragauge.contract.errors import ConfigError
from ragauge.experiment.sweep import pooling, waiting
from ragauge.experiment.sweep.run import is_own
from sweep_records import job_json, record_of


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def pool(cwd: Path, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ragauge", "pool", str(folder), *arguments]
    given = clean_environment(**environment)
    return subprocess.run(command, cwd=cwd, env=given, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_a_copied_folder_does_not_replace_the_run_in_the_first_clone_s_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    theirs.mkdir()
    done = run(theirs, "-m", *SMALL, "llm=none", "retriever=bm25", "n_tokens=100,200")
    assert done.returncode == 0, done.stderr
    shutil.copytree(sweep_folders(theirs)[0], copy := ours / "multirun" / "a" / "b")
    database = theirs / "mlruns" / "mlflow.db"
    runs = [r.info.run_id for r in mlflow_runs(theirs, "sweep")[1]]
    before = digest(database)
    monkeypatch.chdir(ours)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert pool_command([str(copy)]) == 2
    told = capsys.readouterr().err
    assert "was written as" in told
    assert f"jobs are in MLflow at sqlite:///{database}" in told
    assert "--tracking-uri" in told
    assert not (ours / "mlruns").exists()
    # The environment of a shell is no order to write there, either.
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{database}")
    assert pool_command([str(copy)]) == 2
    assert digest(database) == before
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert pool_command([str(copy), "--tracking-uri", "sqlite:///mlruns/mlflow.db"]) == 0
    told = capsys.readouterr().err
    assert f"writes into MLflow at sqlite:///{ours}/mlruns/mlflow.db" in told
    assert f"reads {copy}" in told
    (pooled,) = mlflow_runs(ours, "sweep")[1]
    assert pooled.data.metrics["jobs"] == 2
    assert digest(database) == before
    assert [r.info.run_id for r in mlflow_runs(theirs, "sweep")[1]] == runs


@pytest.mark.slow
def test_from_another_directory_nothing_is_paid_again_and_no_store_is_made(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    other.mkdir()
    arguments = ["retriever=bm25,none", "n_tokens=100", "dataset.limit=4", "judge.mode=batch"]
    with ChatServer(reply) as server:
        done = chat_sweep(home, server, *arguments)
        assert done.returncode == 0, done.stderr
        (folder,) = sweep_folders(home)
        for file in folder.glob("*/job.json"):  # as if judging had been interrupted
            file.write_text(json.dumps({**json.loads(file.read_text()), "deferred": True}))
        paid = sum(server.calls.values())
        assert paid > 0
        refused = pool(other, folder, RAGAUGE_API_KEY=KEY)
        assert refused.returncode == 2
        assert "--tracking-uri" in refused.stderr
        assert not list(other.iterdir())
        uri = f"sqlite:///{home}/mlruns/mlflow.db"
        again = pool(
            other, folder, "--tracking-uri", uri, RAGAUGE_API_KEY=KEY, RAGAUGE_STORE=str(other / "store"),
            RAGAUGE_LEDGER=str(other / "ledger.db"),
        )  # fmt: skip
        assert again.returncode == 0, again.stderr
        assert sum(server.calls.values()) == paid
    assert not list(other.iterdir())
    assert not any(record.get("deferred") for record in job_records(folder))
    assert len(mlflow_runs(home, "sweep")[1]) == 1


def record_in(folder: Path, **more: Any) -> None:
    folder.mkdir(parents=True)
    record = {
        "status": "FINISHED", "name": "a job", "number": 0, "sweep_id": "s", "experiment": "e",
        "exit_code": 0, "written_in": str(folder.resolve()), "tracking_uri": "sqlite:////nowhere/mlflow.db",
        "store": "/nowhere/store", "deferred": True, "metrics": {}, "dataset_digest": "d", **more,
    }  # fmt: skip
    job_json(folder, record)


@pytest.mark.parametrize("copied", [True, False])
def test_verdicts_that_are_waited_for_are_not_made_elsewhere(tmp_path: Path, copied: bool) -> None:
    record_in(tmp_path / "first" / "0")
    folder = tmp_path / "first"
    if copied:
        folder = tmp_path / "second"
        os.rename(tmp_path / "first", folder)
    uri = None if copied else f"sqlite:///{tmp_path}/ours.db"
    with pytest.raises(ConfigError, match=r"1 job\(s\) wait for their verdicts, .*first --tracking-uri sqlite:////n"):
        pooling.pool(folder, uri)
    assert not (tmp_path / "ours.db").exists()


def test_a_store_that_is_gone_is_told_before_anything_is_asked(tmp_path: Path, capsys) -> None:
    record_in(tmp_path / "0")
    (tmp_path / "0" / ".hydra").mkdir()
    (tmp_path / "0" / ".hydra" / "config.yaml").write_text("store: .ragauge\ntracking: {uri: null}\n")
    assert pooling.pool(tmp_path) == 2
    told = capsys.readouterr().err
    assert re.search(r"a job waits for its verdicts, but the store .* gone: /nowhere/store", told)


def test_a_job_that_waits_has_the_store_ledger_and_window_of_traces_that_it_ran_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0" / ".hydra").mkdir(parents=True)
    there = {
        "store": ".ragauge", "tracking": {"uri": None}, "dataset": {"snapshot": None}, "llm": {"kind": "none"},
        "judge": {"ledger": "here.db"}, "evaluator": {"ledger": "other.db"},
    }  # fmt: skip
    (tmp_path / "0" / ".hydra" / "config.yaml").write_text(json.dumps(there))
    record = {
        "folder": tmp_path / "0", "name": "a job", "number": 0, "choices": {}, "overrides": [],
        "store": str(tmp_path), "tracking_uri": "sqlite:////was/mlflow.db", "snapshot": "2026-01-02",
        "ledgers": {"judge": "/was/ledger.db", "evaluator": "postgresql://a:***@b/c", "llm": "/was/ledger.db"},
    }  # fmt: skip
    made: list[Any] = []
    monkeypatch.setattr(waiting, "make_pipeline", lambda request: made.append(request.cfg))
    monkeypatch.setattr(waiting, "check_measures", lambda pipeline, alone: None)
    waiting.waiting_job(record_of(record))
    waiting.waiting_job(record_of({**record, "snapshot": ""}))
    assert [cfg.dataset.snapshot for cfg in made] == ["2026-01-02", None]
    assert (made[0].store, made[0].tracking.uri) == (str(tmp_path), "sqlite:////was/mlflow.db")
    assert (made[0].judge.ledger, made[0].evaluator.ledger) == ("/was/ledger.db", "other.db")
    assert made[0].llm == there["llm"]


def test_runs_of_jobs_are_touched_only_where_the_sweep_s_run_stands_beside_them() -> None:
    assert is_own(record_of(tracking_uri="sqlite:///a.db"), None)
    assert is_own(record_of(tracking_uri="sqlite:///a.db"), "sqlite:///a.db")
    assert is_own(record_of(), "sqlite:///a.db")  # it ended before it had a run
    assert not is_own(record_of(tracking_uri="sqlite:///a.db"), "sqlite:///b.db")
