"""When the run of this process began: a job, or the jobs of a sweep."""

from __future__ import annotations

import time

_began = time.time()


def run_begins(at: float | None = None) -> None:
    """Says that a run began at a time, in seconds since 1970, now by default; never before the one known."""
    global _began
    _began = max(_began, time.time() if at is None else at)


def of_this_run(at: float) -> bool:
    """True for a time (seconds since 1970) since the process's run began."""
    return at >= _began
