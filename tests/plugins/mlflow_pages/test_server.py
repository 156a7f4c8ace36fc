"""MLflow's server as `ragauge ui` starts it: the port, and how long is waited between two looks."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ragauge.contract.errors import ConfigError, TrackingError
from ragauge.plugins.mlflow_pages import ui


def test_a_port_is_free_unless_somebody_listens_on_it(tmp_path: Path) -> None:
    database = tmp_path / "mlflow.db"
    database.touch()
    with socket.socket() as taken:
        taken.bind((ui.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not ui._is_free(port)
        with pytest.raises(ConfigError, match=f"port {port} of 127.0.0.1 is taken.*--port {port + 1}"):
            ui.serve(f"sqlite:///{database}", port)
    assert ui._is_free(port)


def test_what_is_not_there_or_a_server_already_is_not_served(tmp_path: Path) -> None:
    told: list[str] = []
    ui.serve("https://me:hunter2hunter2@host", 1, told.append)
    assert told == ["MLflow is a server already: https://***@host"]
    with pytest.raises(ConfigError, match="nothing was measured from this folder yet"):
        ui.serve(f"sqlite:///{tmp_path / 'mlflow.db'}", 1)


def test_a_server_that_starts_slowly_is_looked_at_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = tmp_path / "mlflow.db"
    database.touch()
    answers, waits, told = iter([False, False, True]), [], []
    monkeypatch.setattr(ui, "_answers", lambda url: next(answers))
    monkeypatch.setattr(ui, "time", SimpleNamespace(sleep=waits.append))

    def tell(line: str) -> None:
        told.append(line)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ui.serve(f"sqlite:///{database}", 5009, tell, ["sleep", "60"])
    assert waits == [ui._LOOK] * 2
    assert told == ["MLflow's UI: http://127.0.0.1:5009  (Ctrl-C ends it)"]
    monkeypatch.setattr(ui, "_answers", lambda url: True)
    with pytest.raises(TrackingError, match=r"MLflow's server ended: last \| words"):
        ui.serve(f"sqlite:///{database}", 5009, told.append, ["sh", "-c", "echo last; echo words; exit 3"])


def test_ui_serves_on_port_5000_unless_told_otherwise_until_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def serve(uri: str, port: int, tell: object) -> None:
        asked.append((uri, port))
        raise KeyboardInterrupt

    monkeypatch.setattr(ui, "serve", serve)
    assert ui.main(["--tracking-uri", "http://here"]) == 0
    assert ui.main(["--tracking-uri", "http://here", "--port", "65535"]) == 0
    assert asked == [("http://here", 5000), ("http://here", 65535)]
    for port in ("0", "65536"):
        assert ui.main(["--port", port]) == 2


def test_the_help_begins_with_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        ui.main(["--help"])
    assert capsys.readouterr().out.startswith("usage: ragauge ui ")
