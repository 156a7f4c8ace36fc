"""What stands at tracking.uri: a server that is no MLflow, and a database that cannot be made whole."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

import made_database
from ragauge.contract.errors import ConfigError, full_disk
from ragauge.track import connect, connection
from ragauge.track.connection import client_of, missing_database


@pytest.fixture(autouse=True)
def own_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_make_whole", made_database.make_whole)


@contextmanager
def web_server(said: bytes) -> Iterator[str]:
    """URL of a server that answers the same to whatever it is asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    "said",
    [
        *(b"", b"{}", b"null", b"<html>" + b"word " * 10_000, b'{"experiments": 5}', b"[" * 100_000),
        b'{"experiment_id": [], "experiment": "x"}',
    ],
    ids=lambda said: repr(said[:20]),
)
def test_a_web_server_that_is_no_mlflow_is_one_line(said: bytes) -> None:
    with web_server(said) as uri:
        with pytest.raises(ConfigError, match=f"MLflow at {uri}: ") as told:
            client_of(uri, "ours")
        assert "\n" not in str(told.value)
        assert len(str(told.value)) < 700


def test_a_database_whose_tables_another_program_left_half_made_is_one_line_with_a_remedy(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        database.execute("CREATE TABLE logged_models (id TEXT)")
    with pytest.raises(ConfigError, match="its tables are half made: delete the file if it holds no runs") as told:
        connect(f"sqlite:///{tmp_path}/mlflow.db")
    assert "\n" not in str(told.value)


def test_a_disk_that_fills_up_while_the_database_is_made_leaves_none_behind(tmp_path: Path) -> None:
    def fill(connection: Any, _: object) -> None:
        connection.execute("PRAGMA max_page_count = 60")  # a whole one has some 230

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    event.listen(Engine, "connect", fill)
    try:
        with pytest.raises(Exception, match="database or disk is full") as told:
            connect(uri)
    finally:
        event.remove(Engine, "connect", fill)
    assert full_disk(told.value)
    assert [path.name for path in tmp_path.iterdir()] == [".prepare.lock"]
    client, experiment = client_of(uri, "ours")
    assert client.get_experiment(experiment).name == "ours"


def test_a_database_is_missing_where_its_file_is_not_there(tmp_path: Path) -> None:
    (there := tmp_path / "there.db").touch()
    assert missing_database(f"sqlite:///{there}") is None
    assert missing_database(f"sqlite:///{tmp_path}/gone.db") == tmp_path / "gone.db"
    assert missing_database("https://mlflow.example") is None
