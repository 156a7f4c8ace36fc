"""Commands in processes of their own: fresh interpreters, and forks of one that has everything imported.

A fresh interpreter imports MLflow, scikit-learn and torch for ten seconds or more before it does anything.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from multiprocessing import forkserver
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[1]
RUN = str(ROOT / "run.py")
# The sweep that `two_by_two` of conftest.py ran.
TWO_BY_TWO = [
    "-m", "dataset.limit=12", "chunker=none", "bootstrap=50", "retriever=bm25,sim", "n_tokens=100,300",
]  # fmt: skip


# What chooses a dataset, or takes that of a logged job.
_CHOOSES = ("dataset=", "+dataset=", "experiment=", "+experiment=", "rerun=")


def on_the_sample(program: str, arguments: Sequence[str]) -> list[str]:
    """The arguments; those of a run.py that start jobs and choose no dataset are over the shipped sample."""
    starts = Path(program).name == "run.py" and (not arguments or arguments[0].startswith("-") or "=" in arguments[0])
    asks = any(argument in ("-h", "--help", "--version", "--info") for argument in arguments)
    if not starts or asks or any(argument.startswith(_CHOOSES) for argument in arguments):
        return list(arguments)
    return [*arguments, "dataset=sample"]


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without what would send a command to the user's own runs and store."""
    kept = {k: v for k, v in os.environ.items() if k not in ("MLFLOW_TRACKING_URI", "RAGAUGE_STORE")}
    return {**kept, **more}


class Command:
    """A Python program with its arguments, started in a folder as a fork that leads a session of its own."""

    def __init__(
        self, folder: Path, *arguments: str, program: str = RUN, environment: Mapping[str, str] | None = None
    ) -> None:
        _start_server()
        self._folder = tempfile.TemporaryDirectory(prefix="ragauge-command-")
        self._said = [Path(self._folder.name) / name for name in ("out", "err")]
        for file in self._said:
            file.touch()
        self.args = [program, *on_the_sample(program, arguments)]
        given = clean_environment() if environment is None else dict(environment)
        context = multiprocessing.get_context("forkserver")
        self._process = context.Process(target=_run, args=(str(folder), self.args, given, *self._said))
        self._process.start()

    @property
    def runs(self) -> bool:
        return self._process.is_alive()

    def signal(self, number: int) -> None:
        """Signals the command alone, not what it started."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    @property
    def group_runs(self) -> bool:
        """Whether it, or anything that it started, is still there."""
        members = (p for p in psutil.process_iter() if _group(p.pid) == self._process.pid)
        return any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in members)

    def kill(self) -> None:
        """Kills it and all that it started, at once."""
        assert self._process.pid is not None
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:  # it has ended, or has no session yet
            self._process.kill()
        self._process.join()

    def wait(self, timeout: float = 3000) -> subprocess.CompletedProcess[str]:
        """How it ended, and what it said."""
        self._process.join(timeout)
        if self.runs:
            self.kill()
            raise subprocess.TimeoutExpired(self.args, timeout)
        out, err = (file.read_text(encoding="utf-8") for file in self._said)
        self._folder.cleanup()
        return subprocess.CompletedProcess(self.args, self._process.exitcode, out, err)


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python run.py` in a folder, as a fork."""
    return Command(folder, *arguments, environment=clean_environment(**environment)).wait()


def run_fresh(
    folder: Path, *arguments: str, program: str = RUN, **environment: str
) -> subprocess.CompletedProcess[str]:
    """`python run.py` in a folder, in an interpreter of its own, whose strings have hashes of their own."""
    given = on_the_sample(program, arguments)
    return subprocess.run(
        [sys.executable, program, *given], cwd=folder, env=clean_environment(**environment),
        capture_output=True, text=True, timeout=3000, check=False,
    )  # fmt: skip


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def until(condition: Callable[[], bool], what: str, seconds: float = 600) -> None:
    """Waits for a condition; fails, saying what did not come, after a time that is no part of any test."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.02)


@cache
def _start_server() -> None:
    """Starts the process that commands are forked from, and waits until it has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["preloaded"])
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(ROOT / "tests"), os.environ.get("PYTHONPATH")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        forkserver.ensure_running()
    first = context.Process(target=os.getpid)
    first.start()
    first.join()


def _run(folder: str, command: list[str], environment: dict[str, str], out: Path, err: Path) -> None:
    os.setsid()
    for stream, file in ((1, out), (2, err)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND), stream)
    for name in set(os.environ) - set(environment):
        if name.startswith(("RAGAUGE_", "MLFLOW_TRACKING_", "PYTHONPATH")):  # imports have set others
            del os.environ[name]
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv[:] = command
    sys.path.insert(0, str(Path(command[0]).parent))
    try:
        runpy.run_path(command[0], run_name="__main__")
    finally:
        # As an interpreter ends: a fork would first wait for worker processes, which these calls tell to end.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
