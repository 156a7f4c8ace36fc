"""Progress of work: a bar on a terminal, lines in the log elsewhere.

Work that takes less than a second shows nothing. Where standard error is no terminal, the log gets lines instead: one
at the start with the amount of work, one every 30 seconds with the work done and the time left, and one at the end of
work that took that long.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol, Self, TextIO

from tqdm import tqdm

log = logging.getLogger(__name__)

_FIRST = 1.0  # seconds of work before anything is told
_EVERY = 30.0  # seconds between two lines
_LOOK = 1.0  # seconds between two looks at the clock


class Progress(Protocol):
    """Work in progress, as a context manager that ends it. total: number of steps."""

    total: Any

    def update(self, n: int = 1) -> object:
        """Adds n finished steps."""

    def restart(self, total: int | None, done: int = 0) -> None:
        """Restarts the clock with `total` steps, `done` of them finished."""

    def set_postfix_str(self, s: str = "", refresh: bool = True) -> None:
        """Sets the text after the count, such as the loss."""

    def write(self, s: str, file: TextIO | None = None) -> None:
        """Prints a line on standard output, or into `file`, without breaking the bar."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *ended: Any) -> None: ...


def progress(total: int | None, what: str, unit: str = "step") -> Progress:
    """Shows the progress of the work `what`: a bar on a terminal, else lines in the log.

    total: number of `unit`s (a singular); None is unknown. An empty unit is work without a count, which `what`
    describes alone, such as "chunking 1,890 documents".
    """
    if not _watched():
        return _TELLER.open(total, what, unit)
    form = None if unit else "{desc}, {elapsed}"
    return _Bar(total=total, desc=what, unit=unit, delay=_FIRST, leave=False, dynamic_ncols=True, bar_format=form)


def working(what: str) -> Progress:
    """`progress` of work without a count; progress reported within replaces it."""
    return progress(None, what, "")


def duration(seconds: float) -> str:
    """A readable time: `42 s`, `3 min 20 s`, from ten minutes on `12 min`, `1 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 600:
        return f"{whole // 60} min {whole % 60:02} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def _watched() -> bool:
    """Whether standard error is a terminal."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # a stand-in for it, or closed
        return False


class _Bar(tqdm):  # type: ignore[type-arg]
    """A restartable tqdm bar; if nothing is counted, its clock runs between updates."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if not self.unit:
            _TELLER.bars.append(self)
            _TELLER.watch()

    def restart(self, total: int | None, done: int = 0) -> None:
        self.reset(total)
        self.initial = self.n = self.last_print_n = done

    def __exit__(self, *ended: Any) -> None:  # pyrefly: ignore[bad-override]
        self.close()

    def close(self) -> None:
        _TELLER.bars = [bar for bar in _TELLER.bars if bar is not self]
        super().close()


class _Lines:
    """One piece of work, logged by a Teller."""

    def __init__(self, teller: Teller, total: int | None, what: str, unit: str, now: float) -> None:
        self._teller = teller
        self.total, self.what, self.unit = total, what, unit
        self.n = self.first = 0
        self.postfix = ""
        self.began = now
        self.told: float | None = None  # when the last line was
        self.counted = False  # whether one of them said how far the work is

    def update(self, n: int = 1) -> None:
        self.n += n

    def restart(self, total: int | None, done: int = 0) -> None:
        self.total, self.n, self.first = total, done, done
        self.began, self.told = self._teller.clock(), None

    def set_postfix_str(self, s: str = "", refresh: bool = True) -> None:
        self.postfix = s

    def write(self, s: str, file: TextIO | None = None) -> None:
        print(s, file=file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: Any) -> None:
        self._teller.close(self, done=ended[0] is None)

    def beginning(self) -> str:
        """The line at the start: the amount of work."""
        left = None if self.total is None else self.total - self.first
        return f"{self.what}: {self._units(left)}" if self.unit and left is not None else self.what

    def so_far(self, now: float) -> str:
        """The line in between: work done, time, and estimated time left."""
        spent = now - self.began
        parts = [f"{duration(spent)} so far"]
        if self.unit:
            parts[:0] = [self._count(), *([self.postfix] if self.postfix else [])]
        if self.total is not None and self.n > self.first:
            left = spent * (self.total - self.n) / (self.n - self.first)
            parts.append(f"about {duration(max(0.0, left))} left")
        return f"{self.what}: {', '.join(parts)}"

    def end(self, now: float) -> str:
        """The line at the end: work done and time."""
        done = f"{self._units(self.n - self.first)} in" if self.unit else "done in"
        postfix = f", {self.postfix}" if self.postfix else ""
        return f"{self.what}: {done} {duration(now - self.began)}{postfix}"

    def _count(self) -> str:
        if not self.total:
            return self._units(self.n)
        return f"{self.n:,} of {self._units(self.total)} ({self.n / self.total:.0%})"

    def _units(self, n: int) -> str:
        plural = f"{self.unit[:-1]}ies" if self.unit.endswith("y") else f"{self.unit}s"
        return f"{n:,} {self.unit if n == 1 else plural}"


class Teller:
    """Logs the lines of all work in progress in a process, the innermost last.

    clock: seconds; tell: gets a line. threaded: a thread calls `tick` every second while there is work.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[str], None] | None = None,
        threaded: bool = False,
    ) -> None:
        self.clock = clock
        self._tell = tell or (lambda line: log.info("%s", line))
        self._threaded = threaded
        self.forget()

    def forget(self) -> None:
        """Resets the state, as in a forked process."""
        self._lock = threading.RLock()
        self._open: list[_Lines] = []
        self.bars: list[_Bar] = []
        self._thread: threading.Thread | None = None

    def open(self, total: int | None, what: str, unit: str) -> _Lines:
        """Starts a piece of work."""
        lines = _Lines(self, total, what, unit, self.clock())
        with self._lock:
            self._open.append(lines)
        self.watch()
        return lines

    def close(self, lines: _Lines, done: bool) -> None:
        """Ends a piece of work; logs a line if it was long and finished."""
        with self._lock:
            if lines not in self._open:
                return
            self._open.remove(lines)
            now = self.clock()
            if done and lines.counted:
                self._tell(lines.end(now))
            if self._open and lines.told is not None and self._open[-1].told is not None:
                self._open[-1].told = now

    def tick(self) -> None:
        """Draws uncounted bars again, and logs the lines that are due."""
        with self._lock:
            now = self.clock()
            for bar in self.bars:
                bar.update(0)
            for lines in self._open:
                if lines.told is None and now - lines.began >= _FIRST:
                    lines.told = now
                    self._tell(lines.beginning())
            last = self._open[-1] if self._open else None
            if last is not None and last.told is not None and now - last.told >= _EVERY:
                last.told, last.counted = now, True
                self._tell(last.so_far(now))

    def watch(self) -> None:
        """Starts the thread that calls `tick`."""
        with self._lock:
            if self._threaded and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._watch, name="ragauge-progress", daemon=True)
                self._thread.start()

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK)
            with self._lock:
                if not self._open and not self.bars:
                    self._thread = None
                    return
                self.tick()


_TELLER = Teller(threaded=True)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_TELLER.forget)
