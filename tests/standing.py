"""Where a run of the tests stands: a line every half a minute, with the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

_EVERY = 30.0  # seconds


class Standing:
    """Counts finished tests in the process that reports, whether or not workers run them."""

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._start = self._last = clock()
        self._total = self._done = self._failed = 0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._begin(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self._begin(len(ids))

    def _begin(self, total: int) -> None:
        if total and not self._total:
            self._total = total
            self._start = self._last = self._clock()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed += report.failed
        if report.when != "teardown":
            return
        self._done += 1
        now = self._clock()
        if now - self._last >= _EVERY:
            self._last = now
            self._write(standing(self._done, self._total, self._failed, now - self._start))


def standing(done: int, total: int, failed: int, seconds: float) -> str:
    """How many tests of all have ended, in how long, and how long the others take at this pace."""
    left = seconds * (total - done) / done
    return (
        f"{done:,} of {total:,} tests ({done / total:.0%}), {failed} failed, {minutes(seconds)}, "
        f"about {minutes(left)} left"
    )


def minutes(seconds: float) -> str:
    """Whole minutes and seconds, such as 1 min 05 s."""
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60:02} s" if whole >= 60 else f"{whole} s"
