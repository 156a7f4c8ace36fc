"""The command `ragauge ui`: MLflow's server on a database of this machine; it listens on 127.0.0.1 alone."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TextIO

from ragauge.commands.errors import told
from ragauge.contract.errors import ConfigError, TrackingError
from ragauge.contract.progress import working
from ragauge.contract.redact import redact
from ragauge.track.connection import missing_database, tracking_uri

ABOUT = "starts MLflow's UI on the measured runs, and prints its address"
HOST = "127.0.0.1"
_LOOK = 0.3  # seconds between two looks at whether the server answers
_GRACE = 10.0  # seconds that it has for ending
_GUARD = "read line; kill -KILL 0"  # 0: its own process group
_LINES = 5  # of its output, told where it does not start


def serve(uri: str, port: int, tell: Callable[[str], None] = print, command: Sequence[str] | None = None) -> None:
    """Runs MLflow's UI on the database at the URI until interrupted; prints the address once it answers.

    For a URI of a server it prints the address and starts nothing. `command` starts another server than MLflow's, for
    tests. ConfigError where the port is taken or the database is not there, TrackingError where the server ends before
    it answers.
    """
    if uri.startswith(("http://", "https://")):
        tell(f"MLflow is a server already: {redact(uri)}")
        return
    if database := missing_database(uri):
        raise ConfigError(f"{database} is not there: nothing was measured from this folder yet")
    if not _is_free(port):
        raise ConfigError(
            f"port {port} of {HOST} is taken, perhaps by an MLflow that runs already (http://{HOST}:{port}); "
            f"another one: ragauge ui --port {port + 1}, or make ui PORT={port + 1}"
        )
    # One worker: each imports MLflow for seconds, and one reader needs no more.
    command = command or [
        *(sys.executable, "-m", "mlflow", "server", "--workers", "1"),
        *("--uvicorn-opts", "--log-level warning", "--host", HOST, "--port", str(port)),
    ]
    # In the environment, where no other user reads a password.
    given = {"MLFLOW_BACKEND_STORE_URI": uri, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    url = f"http://{HOST}:{port}"
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        # In a process group of its own: Ctrl-C then reaches this process alone, which ends the server's. Only
        # this process can write to the guard's pipe: when it ends, by kill -9 too, the guard ends the group.
        # Windows has no such groups: there the server gets the Ctrl-C, too.
        guard, group = None, None
        if os.name == "posix":
            guard = subprocess.Popen(["/bin/sh", "-c", _GUARD], stdin=subprocess.PIPE, process_group=0)
            group = guard.pid
        environment = {**os.environ, **given}
        server = subprocess.Popen(command, env=environment, stdout=said, stderr=said, process_group=group)
        try:
            with working("MLflow's server starts"):
                while not _answers(url):
                    if server.poll() is not None:
                        raise TrackingError(f"MLflow's server ended before it answered: {_last(said)}")
                    time.sleep(_LOOK)
            tell(f"MLflow's UI: {url}  (Ctrl-C ends it)")
            if server.wait() != 0:
                raise TrackingError(f"MLflow's server ended: {_last(said)}")
        finally:
            _end(server, guard)


def _is_free(port: int) -> bool:
    """Whether a server can listen on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _answers(url: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy between us and ourselves
    try:
        with opener.open(f"{url}/health", timeout=30) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _last(said: TextIO) -> str:
    """The last lines of a server's output, joined into one."""
    said.seek(0)
    lines = [line.strip() for line in said.read().splitlines() if line.strip()]
    return redact(" | ".join(lines[-_LINES:]) or "it said nothing")


def _end(server: subprocess.Popen[bytes], guard: subprocess.Popen[bytes] | None) -> None:
    """Ends the server, its children, and the guard, which leads their process group."""
    server.terminate()
    with suppress(subprocess.TimeoutExpired):
        server.wait(_GRACE)
    if guard is not None:
        guard.communicate()  # closes the pipe
    server.wait()


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="ragauge ui",
        description="Starts MLflow's UI on the measured runs, and prints its address once it answers. It "
        "listens on 127.0.0.1 alone; Ctrl-C ends it.",
    )
    parser.add_argument("--port", type=int, default=5000, help="port of 127.0.0.1; 5000 unless given")
    parser.add_argument("--tracking-uri", help="where MLflow keeps the runs; else as in a run of ragauge")
    given = parser.parse_args(arguments)
    if not 0 < given.port < 65536:
        raise ConfigError(f"--port={given.port}: allowed are 1 to 65535")
    try:
        serve(tracking_uri(given.tracking_uri), given.port, lambda line: print(line, flush=True))
    except KeyboardInterrupt:  # how it is meant to end
        return 0
    return 0
