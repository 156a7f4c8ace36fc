"""MLflow's server as `ragauge ui` starts it: the port, and how long is waited between two looks."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from ragauge.contract.errors import ConfigError, TrackingError
from ragauge.track import _server


def test_a_port_is_free_unless_somebody_listens_on_it(tmp_path: Path) -> None:
    database = tmp_path / "mlflow.db"
    database.touch()
    with socket.socket() as taken:
        taken.bind((_server.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not _server._is_free(port)
        with pytest.raises(ConfigError, match=f"port {port} of 127.0.0.1 is taken.*--port {port + 1}"):
            _server.serve(f"sqlite:///{database}", port)
    assert _server._is_free(port)


def test_what_is_not_there_or_a_server_already_is_not_served(tmp_path: Path) -> None:
    told: list[str] = []
    _server.serve("https://me:hunter2hunter2@host", 1, told.append)
    assert told == ["MLflow is a server already: https://***@host"]
    with pytest.raises(ConfigError, match="nothing was measured from this folder yet"):
        _server.serve(f"sqlite:///{tmp_path / 'mlflow.db'}", 1)


def test_a_server_that_starts_slowly_is_looked_at_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = tmp_path / "mlflow.db"
    database.touch()
    answers, waits, told = iter([False, False, True]), [], []
    monkeypatch.setattr(_server, "_answers", lambda url: next(answers))
    monkeypatch.setattr(_server, "time", SimpleNamespace(sleep=waits.append))

    def tell(line: str) -> None:
        told.append(line)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _server.serve(f"sqlite:///{database}", 5009, tell, ["sleep", "60"])
    assert waits == [_server._LOOK] * 2
    assert told == ["MLflow's UI: http://127.0.0.1:5009  (Ctrl-C ends it)"]
    monkeypatch.setattr(_server, "_answers", lambda url: True)
    with pytest.raises(TrackingError, match=r"MLflow's server ended: last \| words"):
        _server.serve(f"sqlite:///{database}", 5009, told.append, ["sh", "-c", "echo last; echo words; exit 3"])
