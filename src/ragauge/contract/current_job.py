"""The current job of this process: its folder and the start of its run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_folder: str | None = None


@contextmanager
def working_on(folder: Path) -> Iterator[None]:
    """Sets the folder of the job or sweep that this process works on, within the block."""
    global _folder
    before, _folder = _folder, str(folder.resolve())
    try:
        yield
    finally:
        _folder = before


def job_folder() -> str | None:
    """The folder of the job; None where no job runs."""
    return _folder


_began = time.time()


def run_begins(at: float | None = None) -> None:
    """Sets the start of the run, in seconds since 1970 (default: now), unless a later one is known."""
    global _began
    _began = max(_began, time.time() if at is None else at)


def of_this_run(at: float) -> bool:
    """True for a time (seconds since 1970) since the process's run began."""
    return at >= _began
