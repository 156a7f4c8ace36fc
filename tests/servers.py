"""PostgreSQL, MLflow and other servers of a test's own, on loopback, gone with the test."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def postgres_server(fsync: bool = False) -> Iterator[str]:
    """URL of the database that RAGAUGE_TEST_POSTGRES names, or of one started here; skips without either.

    fsync: its commits wait for the disk.
    """
    pytest.importorskip("psycopg")
    if given := os.environ.get("RAGAUGE_TEST_POSTGRES"):
        yield given
        return
    initdb, pg_ctl = _program("initdb"), _program("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("no PostgreSQL server programs")
    # pytest's own folders are closed to the user that the server runs as.
    with tempfile.TemporaryDirectory(prefix="ragauge-postgres-", ignore_cleanup_errors=True) as folder:
        user = _unprivileged(Path(folder))
        data, port = Path(folder) / "data", free_port()
        options = f"-c listen_addresses=127.0.0.1 -p {port} -k {folder} -c fsync={'on' if fsync else 'off'}"
        _run(user, initdb, "-D", data, "-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync")
        _run(user, pg_ctl, "-D", data, "-o", options, "-l", data / "log", "-w", "start")
        try:
            yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        finally:
            _run(user, pg_ctl, "-D", data, "-m", "immediate", "stop")


@contextmanager
def database(server: str) -> Iterator[str]:
    """URL of a new, empty database on the server, dropped at the end."""
    import psycopg
    from sqlalchemy.engine import make_url

    name = f"ragauge_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def mlflow_server(backend: str, artifacts: Path, log: Path) -> Iterator[str]:
    """URL of an `mlflow server` with the database and the artifact folder, as docs/team.md starts one."""
    command = [
        sys.executable, "-m", "mlflow", "server", "--workers", "1", "--backend-store-uri", backend,
        "--artifacts-destination", str(artifacts),
    ]  # fmt: skip
    with http_server(command, log, MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false") as url:
        yield url


@contextmanager
def http_server(command: Sequence[str], log: Path, **environment: str) -> Iterator[str]:
    """URL of a server that takes --host and --port and answers at /health; killed with its processes."""
    port = free_port()
    with log.open("w") as out:
        server = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)], cwd=log.parent,
            env={**os.environ, **environment}, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 1200
        while not _is_up(url):
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{' '.join(command[:4])} did not start: {log.read_text()[-2000:]}")
            time.sleep(0.2)
        yield url
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _program(name: str) -> str | None:
    """Where a server program is: Debian keeps them out of PATH."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, places)]))


def _unprivileged(folder: Path) -> str | None:
    """The user that PostgreSQL runs as where we are root, which it refuses; the folder is made theirs."""
    if os.geteuid() != 0:
        return None
    user = next(u for u in ("postgres", "nobody") if any(u == entry.pw_name for entry in pwd.getpwall()))
    shutil.chown(folder, user)
    return user


def _run(user: str | None, *command: str | Path) -> None:
    # In the root folder, which every user may be in; without our groups.
    rights = {} if user is None else {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
    done = subprocess.run(
        command, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, check=False, **rights,
    )  # fmt: skip
    if done.returncode:
        pytest.fail(f"{Path(command[0]).name}: {done.stderr}")


def _is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=60) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
