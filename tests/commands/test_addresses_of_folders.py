"""A folder of somebody else names an MLflow server, a ledger, a database: this user's credentials stay here."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from mlflow import MlflowClient

from ragauge.commands import compare
from ragauge.commands.results import pool
from ragauge.contract.errors import ConfigError
from ragauge.plugins.gate import command as gate
from ragauge.plugins.upkeep import ledger
from ragauge.track import Reader, recorded_uri, tracking_uri
from sweep_records import job_json


class _Listener(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str | None] = []
        self.uri = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: _Listener

    def do_POST(self) -> None:
        self.server.asked.append(self.headers.get("Authorization"))
        self.send_error(403)

    do_GET = do_POST

    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def theirs() -> Iterator[_Listener]:
    with _Listener() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path, theirs: _Listener, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mine.db")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "my-own-token")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    job = tmp_path / "sweep" / "0"
    job.mkdir(parents=True)
    record = {
        "number": 0, "status": "FINISHED", "name": "a job", "experiment": "e", "sweep_id": "s", "exit_code": 0,
        "run_id": "ab" * 16, "tracking_uri": theirs.uri, "tracking_configured": True, "written_in": str(job.resolve()),
        "overrides": [], "choices": {}, "n_tokens": 100, "seed": 0, "bootstrap": 0,
        "ledgers": {"judge": f"{theirs.uri.replace('http', 'postgresql')}/ledger"},
    }  # fmt: skip
    job_json(job, {**record, "metrics": {"x": 1.0}, "dataset_digest": "d"})
    return str(tmp_path / "sweep")


def test_no_command_asks_the_server_that_only_a_folder_names(
    folder: str, theirs: _Listener, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (
        lambda: compare.main([folder]),
        lambda: compare.main([folder + "/0"]),
        lambda: gate.main([folder, "ir_score=0.5"]),
        lambda: gate.main([folder, "ir_score={tolerance: 0.1}", "--baseline", folder]),
    ):
        assert command() == 2
        told = capsys.readouterr().err
        assert f"are in MLflow at {theirs.uri}" in told
        assert "this command uses sqlite:///" in told
        assert f"--tracking-uri {theirs.uri}" in told
        assert told.count("\n") == 1
    assert pool([folder]) == 2
    assert f"--tracking-uri {theirs.uri}" in capsys.readouterr().err
    assert ledger.main(["ls", "--job", folder]) == 2
    assert "RAGAUGE_LEDGER is not set" in capsys.readouterr().err
    assert theirs.asked == []
    assert compare.main([folder, "--tracking-uri", theirs.uri]) == 2
    assert set(theirs.asked) == {"Bearer my-own-token"}


def test_jobs_that_wait_for_verdicts_send_no_key_where_only_their_folder_points(
    folder: str, theirs: _Listener, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = Path(folder) / "0" / "job.json"
    record = json.loads(file.read_text())
    ledger_there = record["ledgers"]["judge"]
    record |= {"deferred": True, "tracking_uri": f"sqlite:///{tmp_path}/mine.db", "store": str(tmp_path / "no store")}
    file.write_text(json.dumps(record))
    (file.parent / ".hydra").mkdir()
    config = """
store: /their/store
tracking: {uri: 'https://theirs.example'}
judge:
  _target_: os.system
  prompt: ${oc.env:MY_SECRET}
  chat: {base_url: 'https://theirs.example/v1', api_key_env: MY_OTHER_KEY}
dataset: {path: /their/questions.jsonl}
"""
    (file.parent / ".hydra" / "config.yaml").write_text(config)
    assert pool([folder]) == 2
    told = capsys.readouterr().err
    assert "this user's keys could go there. --trust if this sweep is yours" in told
    assert [line.strip() for line in told.splitlines()[1:]] == [
        "judge._target_=os.system (runs code)",
        "judge.prompt=${oc.env:MY_SECRET} (reads the environment, or what else a resolver does)",
        "judge.chat.base_url=https://theirs.example/v1 (reaches this address)",
        "judge.chat.api_key_env=MY_OTHER_KEY (reads this environment variable)",
        f"ledger={ledger_there} (reaches this address)",
    ]
    assert pool([folder, "--trust"]) == 2
    assert "the store that it used is gone" in capsys.readouterr().err
    # What this user's environment names is asked.
    monkeypatch.setenv("RAGAUGE_LEDGER", ledger_there)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://theirs.example/v1")
    own = config.replace("_target_: os.system", "name: mine").replace("${oc.env:MY_SECRET}", "q").replace("MY_OTH", "X")
    (file.parent / ".hydra" / "config.yaml").write_text(own.replace(", api_key_env: XER_KEY", ""))
    assert pool([folder]) == 2
    assert "the store that it used is gone" in capsys.readouterr().err
    for broken, said in (("[" * 5000, "brackets within each other"), ("a: &b 1", "an anchor"), ("- 1", "no mapping")):
        (file.parent / ".hydra" / "config.yaml").write_text(broken)
        assert pool([folder]) == 2
        assert said in capsys.readouterr().err
    assert theirs.asked == []


def test_the_address_on_a_record_is_used_where_it_is_local_or_this_user_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mine.example:5000")
    assert recorded_uri("sqlite:////tmp/a.db") == "sqlite:////tmp/a.db"
    assert recorded_uri("http://mine.example:5000/") == "http://mine.example:5000/"
    assert recorded_uri("postgresql://me:***@db.example/x") == "http://mine.example:5000"
    assert tracking_uri("http://named.example") == recorded_uri("http://named.example")
    for theirs in (
        "http://mine.example:5000@theirs.example",
        "http://mine.example",
        "postgresql://db/x",
        "databricks://",
    ):
        with pytest.raises(ConfigError, match="this command uses http://mine"):
            recorded_uri(theirs)


def test_files_that_a_local_database_places_on_a_server_are_not_fetched(folder: str, theirs: _Listener) -> None:
    uri = f"sqlite:///{folder}/theirs.db"
    client = MlflowClient(uri)
    experiment = client.create_experiment("e", artifact_location=f"{theirs.uri}/api/2.0/mlflow-artifacts/artifacts")
    run_id = client.create_run(experiment).info.run_id
    for read in (lambda: Reader(uri).text(run_id, "per_question.json"), lambda: Reader(uri).files(run_id, "config")):
        with pytest.raises(ConfigError, match="a server that a database names is not asked"):
            read()
    assert theirs.asked == []
