"""Ends a process early and in order: on Ctrl-C, SIGTERM, SIGHUP, or the end of its parent process.

A terminal or an ssh session sends SIGHUP when it is closed. SIGTERM and SIGHUP raise an exception in the main
thread, as Ctrl-C does, so that MLflow runs are closed on the way out. A worker of a parallel sweep ends when the
process that started it is gone: its results would not be used.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ragauge.contract import provenance
from ragauge.contract.errors import RagaugeError

log = logging.getLogger(__name__)

_LOOK = 0.5  # seconds between two looks at whether the parent process is there
_GRACE = 20.0  # seconds that a job has for closing its MLflow run before its process ends all the same


_lost: ContextVar[str | None] = ContextVar("lost", default=None)


@contextmanager
def lost(why: str) -> Iterator[None]:
    """Within the block, a job does no work: it takes over the MLflow run of a lost job, and fails.

    For a launcher that could not bring a job to its end elsewhere; `why` is the error on record.
    """
    token = _lost.set(why)
    try:
        yield
    finally:
        _lost.reset(token)


def refuse_lost() -> None:
    """RagaugeError in a lost job; to be called once its MLflow run is open."""
    if (why := _lost.get()) is not None:
        raise RagaugeError(why)


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, as a KeyboardInterrupt, so that code handles it like Ctrl-C."""


_INTERRUPTED = 130
# Exit codes by the signal that ends a process; Windows has no SIGHUP.
_SIGNALS = {number: 128 + number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None))}
CODES = (_INTERRUPTED, *_SIGNALS.values())  # exit codes of a command that was interrupted
_OUTPUT = (1, 2)  # file descriptors
_CLOSES = 200  # milliseconds that the reader of a pipe has for ending by the same SIGHUP

_ended_by: int | None = None  # the signal that has come since `terminable` began


def _signal_of(error: KeyboardInterrupt) -> int | None:
    """The causing signal; None for Ctrl-C. Libraries such as Ray raise a KeyboardInterrupt of their own."""
    return _ended_by or (signal.SIGTERM if isinstance(error, Terminated) else None)


def exit_code(error: KeyboardInterrupt) -> int:
    """The exit code of a command that was interrupted: 143 by SIGTERM, 129 by SIGHUP, 130 by Ctrl-C."""
    return _SIGNALS.get(_signal_of(error) or 0, _INTERRUPTED)


def reason(error: KeyboardInterrupt) -> str:
    """The cause that interrupted a command, in a few words."""
    number = _signal_of(error)
    return "interrupted" if number is None else f"terminated by {signal.Signals(number).name}"


def tell(error: KeyboardInterrupt) -> int:
    """Prints the interruption and the way to continue in a line; returns the exit code."""
    with suppress(OSError):  # the terminal may be gone
        print(f"{reason(error)}; what is finished is kept, and the same command goes on from there", file=sys.stderr)
    return exit_code(error)


@contextmanager
def terminable() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP raise Terminated in the main thread within the block; a second one does nothing.

    Outside of the main thread nothing is changed, and neither is a signal that is ignored (`nohup`) or has another
    handler.
    """
    mine = threading.current_thread() is threading.main_thread()
    ours = [number for number in _SIGNALS if mine and signal.getsignal(number) is signal.SIG_DFL]
    if not ours:
        yield
        return
    global _ended_by
    _ended_by = None

    def end(number: int, _: Any) -> None:
        # `timeout` and some schedulers signal the process and its group: the second must not cut short
        # the closing of runs that the first began.
        global _ended_by
        if _ended_by is None:
            _ended_by = number
            if number != signal.SIGTERM:
                _drop_closed_output()
            raise Terminated

    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _drop_closed_output() -> None:
    """Redirects output of a closed terminal to null, since writing would fail while runs are being closed."""
    for descriptor in _OUTPUT:
        closed = select.poll()
        closed.register(descriptor, 0)  # errors alone
        with suppress(OSError):
            if closed.poll(_CLOSES):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)


@contextmanager
def working() -> Iterator[None]:
    """`terminable` for a job; in a worker process the end of its parent acts as SIGTERM."""
    with terminable():
        _follow_parent()
        try:
            yield
        except Terminated:
            if parent_gone():
                log.error("the process that started this worker is gone; the worker ends")
                logging.shutdown()
                os._exit(143)  # to return would be to wait for the next job
            raise


@dataclass(frozen=True)
class _Parent:
    """The parent process, by multiprocessing and by the system at start.

    They differ with a fork server.
    """

    of: int  # the process id of the worker
    started_by: int
    first: int

    def gone(self) -> bool:
        # On Windows getppid stays the same, and the first part alone tells.
        return not provenance.alive(self.started_by) or os.getppid() != self.first


_parent: _Parent | None = None


def parent_gone() -> bool:
    """True in a worker of a parallel sweep whose parent process has ended; False in any other process."""
    return _parent is not None and _parent.of == os.getpid() and _parent.gone()


def _follow_parent() -> None:
    """Starts, once and in worker processes only, the thread that ends this process with its parent."""
    global _parent
    started_by = multiprocessing.parent_process()
    if started_by is None or started_by.pid is None:
        return
    if _parent is None or _parent.of != os.getpid():
        _parent = _Parent(os.getpid(), started_by.pid, os.getppid())
        threading.Thread(target=_end_with, args=(_parent,), name="ragauge-parent", daemon=True).start()


def _end_with(parent: _Parent) -> None:
    while not parent.gone():
        time.sleep(_LOOK)
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        # To the main thread, which may be waiting for replies; without a job it ends the process at once.
        signal.pthread_kill(main, signal.SIGTERM)
        time.sleep(_GRACE)
    os._exit(143)
