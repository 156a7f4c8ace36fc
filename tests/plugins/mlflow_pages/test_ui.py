"""`ragauge ui`: when its address is printed, how it ends, and what it says where it cannot start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from processes import RUN, clean_environment, until
from ragauge.contract.errors import TrackingError
from ragauge.plugins.mlflow_pages import ui
from ragauge.track import connect
from servers import free_port

# A server that takes a while until it listens, and answers at /health alone.
SLOW = """
import sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer

class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()

time.sleep(1)
HTTPServer(("127.0.0.1", int(sys.argv[1])), Health).serve_forever()
"""


@pytest.fixture
def database(tmp_path: Path) -> str:
    (tmp_path / "mlflow.db").touch()
    return f"sqlite:///{tmp_path}/mlflow.db"


def test_the_address_is_told_when_the_server_answers_and_not_before(database: str) -> None:
    port, told = free_port(), []

    def tell(line: str) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as reply:
            told.append((line, reply.status))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ui.serve(database, port, tell, [sys.executable, "-c", SLOW, str(port)])
    assert told == [(f"MLflow's UI: http://127.0.0.1:{port}  (Ctrl-C ends it)", 200)]
    assert ui._is_free(port)  # Ctrl-C has ended the server, too


def test_kill_9_ends_the_server_and_what_it_started(database: str, tmp_path: Path) -> None:
    port = free_port()
    # As MLflow's command does: the server that listens is a child of the one that was started.
    of_server = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLOW!r}, '{port}'])"
    serve = "import sys; from ragauge.plugins.mlflow_pages import ui; "
    serve += f"ui.serve({database!r}, {port}, command=[sys.executable, '-c', {of_server!r}])"
    with subprocess.Popen([sys.executable, "-c", serve], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        assert "MLflow's UI: " in started.stdout.readline()
        started.kill()
    until(lambda: ui._is_free(port), "the server's end", seconds=20)


def test_a_server_that_ends_is_told_with_its_last_lines(database: str) -> None:
    ends = (
        SLOW.replace("serve_forever()", "handle_request()") + "sys.exit('\\n'.join(f'line {n}' for n in range(1, 8)))"
    )
    told: list[str] = []
    with pytest.raises(TrackingError, match=r"MLflow's server ended: line 3 \| line 4 \| line 5 \| line 6 \| line 7$"):
        ui.serve(database, port := free_port(), told.append, [sys.executable, "-c", ends, str(port)])
    assert told == [f"MLflow's UI: http://127.0.0.1:{port}  (Ctrl-C ends it)"]


def test_ui_serves_on_port_5000_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(ui, "serve", lambda uri, port, tell: asked.append((uri, port)))
    assert ui.main(["--tracking-uri", "http://here"]) == ui.main(["--port", "65535", "--tracking-uri", "x"]) == 0
    assert asked == [("http://here", 5000), ("x", 65535)]
    assert ui.main(["--port", "0"]) == ui.main(["--port", "65536"]) == 2


def test_a_server_that_does_not_start_is_told_with_its_last_words(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_BACKEND_STORE_URI", "sqlite:///another.db")
    command = [
        sys.executable,
        "-c",
        "import os, sys; sys.exit('no table in ' + os.environ['MLFLOW_BACKEND_STORE_URI'])",
    ]
    with pytest.raises(TrackingError, match=f"ended before it answered: no table in {database}$"):
        ui.serve(database, free_port(), print, command)


def test_a_port_that_is_taken_is_one_line(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert ui.main(["--port", str(port), "--tracking-uri", database]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: port {port} of 127.0.0.1 is taken")
    assert f"ragauge ui --port {port + 1}" in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "70000"], "error: --port=70000: allowed are 1 to 65535"),
        (["--tracking-uri", "sqlite:////nowhere/mlflow.db"], "error: /nowhere/mlflow.db is not there: "),
    ],
)
def test_what_cannot_be_served_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ui.main(arguments) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(said)


def test_a_tracking_server_is_not_started_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert ui.main(["--tracking-uri", "http://user:secret@mlflow.example:5000"]) == 0
    said = capsys.readouterr().out
    assert "mlflow.example:5000" in said
    assert "secret" not in said


@pytest.mark.slow
def test_mlflows_ui_comes_up_with_one_worker_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    uri, port = f"sqlite:///{tmp_path}/mlflow.db", free_port()
    connect(uri)
    out = tmp_path / "out"
    with out.open("w") as stream:
        started = subprocess.Popen(
            [sys.executable, RUN, "ui", "--port", str(port), "--tracking-uri", uri], cwd=tmp_path,
            env=clean_environment(), stdout=stream, stderr=stream, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored behind a shell's &
        )  # fmt: skip
    try:
        until(lambda: started.poll() is not None or "MLflow's UI: " in out.read_text(), "the address")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as page:
            assert b"MLflow" in page.read()
        os.killpg(started.pid, signal.SIGINT)
        assert started.wait(60) == 0
        assert ui._is_free(port)
    finally:
        started.kill()
        started.wait()
