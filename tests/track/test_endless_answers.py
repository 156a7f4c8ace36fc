"""An MLflow server whose answers drip, do not end or are packed: one line, within a time and with little memory."""

from __future__ import annotations

import itertools
import threading
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.track import _limits
from ragauge.track.connection import connect
from servers import free_port


def _packed() -> bytes:
    pack = zlib.compressobj(1, wbits=31)
    return b"".join(pack.compress(b" " * (1 << 20)) for _ in range(256)) + pack.flush()


@contextmanager
def server_of(mode: str) -> Iterator[str]:
    """URL of a server that answers in this way."""
    ended = threading.Event()
    packed = _packed() if mode == "packed" else b""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(503 if mode == "failing without end" else 200)
            if mode == "dripping headers":
                self.flush_headers()
                self.put(itertools.repeat(b"X: 1\r\n"), 0.3)
                return
            self.send_header("Content-Type", "application/json")
            if mode == "packed":
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            if mode == "packed":
                self.put(iter([packed]), 0)
            elif mode == "dripping":
                self.put(itertools.repeat(b" "), 0.3)
            else:
                self.put(itertools.repeat(b" " * (1 << 16)), 0)

        do_POST = do_GET

        def put(self, pieces: Iterator[bytes], pause: float) -> None:
            try:
                for piece in pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()
                    if ended.wait(pause) if pause else ended.is_set():
                        return
            except OSError:
                self.close_connection = True

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            ended.set()
            server.shutdown()


SAYS = {
    "dripping headers": "no whole answer within",
    "dripping": "less than 64 KiB a second",
    "without end": "longer than 64 MiB",
    "packed": "longer than 64 MiB",
    "failing without end": "too many 503 error responses",
}


@pytest.mark.parametrize("mode", SAYS)
def test_an_answer_without_an_end_is_a_line(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setattr(_limits, "_WHOLE", 0.2)  # of 15 s
    monkeypatch.setattr(_limits, "_BODY_SECONDS", 2.0)
    with pytest.raises(ConfigError, match="does not answer"):
        connect(f"http://127.0.0.1:{free_port()}")  # which imports MLflow
    with server_of(mode) as url:
        began = time.monotonic()
        tracemalloc.start()
        with pytest.raises(
            ConfigError, match=rf"MLflow at {url} does not answer \(.*{SAYS[mode]}|{SAYS[mode]}"
        ) as told:
            connect(url)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert "\n" not in str(told.value)
    assert time.monotonic() - began < 25
    assert peak < 300 << 20


def test_an_artifact_is_read_whole_and_not_beyond_its_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from mlflow.utils.rest_utils import MlflowHostCreds, http_request
    from requests.exceptions import RequestException

    _limits.limit_answers()
    monkeypatch.setattr(_limits, "_LONGEST_FILE", 1 << 20)
    with server_of("without end") as url:
        answer = http_request(MlflowHostCreds(url), "/file", "GET", stream=True)
        with pytest.raises(RequestException, match="longer than 1 MiB"):
            list(answer.iter_content(1000))
    with server_of("packed") as url:
        monkeypatch.setattr(_limits, "_LONGEST_FILE", 1 << 30)
        answer = http_request(MlflowHostCreds(url), "/file", "GET", stream=True)
        assert sum(map(len, answer.iter_content(1000))) == 256 << 20
