"""One event loop in a thread of its own, on which a process makes its calls."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    pass


T = TypeVar("T")


class _LoopThread:
    """An event loop in a thread of its own: clients keep their connections between batches."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="ragauge-llm", daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the coroutine; an interrupt cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


_loop_thread: _LoopThread | None = None


def run_batch(work: Coroutine[Any, Any, T]) -> T:
    """The result of the coroutine, run on the process's one loop thread (a fork starts its own)."""
    global _loop_thread
    if _loop_thread is None or _loop_thread.pid != os.getpid():
        _loop_thread = _LoopThread()
    return _loop_thread.run(work)
