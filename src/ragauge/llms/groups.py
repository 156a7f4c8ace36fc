"""Hands what many callers want done to one thread, as many at once as came together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

MOST = 64  # items of one group
_IDLE_SECONDS = 1.0  # that the thread waits for more before it ends


@dataclass(eq=False)
class Item:
    """Something to be done, and the promise of its result. alone: whether it is done in no group."""

    alone: bool = field(default=False, kw_only=True)
    future: Future[Any] = field(default_factory=Future, kw_only=True)

    def __post_init__(self) -> None:
        self.future.set_running_or_notify_cancel()  # a caller that no longer waits takes nothing back


class Groups:
    """Runs items in the order of their coming, in a thread that ends when it is idle.

    An item that comes alone is run at once. Those that come while `run` is at work are its next group. `run` sets the
    results of all items that it is given.
    """

    def __init__(self, run: Callable[[list[Item]], None]) -> None:
        self._run = run
        self._waiting: deque[Item] = deque()
        self._ready = threading.Condition()
        self._thread: threading.Thread | None = None

    def submit(self, item: Item) -> Future[Any]:
        """Adds an item; returns its future."""
        with self._ready:
            self._waiting.append(item)
            if self._thread is None or not self._thread.is_alive():  # a fork has no threads
                self._thread = threading.Thread(target=self._serve, name="ledger", daemon=True)
                self._thread.start()
            else:
                self._ready.notify()
        return item.future

    def _serve(self) -> None:
        while True:
            with self._ready:
                if not self._waiting and not self._ready.wait_for(lambda: self._waiting, _IDLE_SECONDS):
                    self._thread = None
                    return
                group = [self._waiting.popleft()]
                while self._waiting and len(group) < MOST and not (group[0].alone or self._waiting[0].alone):
                    group.append(self._waiting.popleft())
            try:
                self._run(group)
            except BaseException as error:  # the callers wait, whatever happened
                for item in group:
                    if not item.future.done():
                        item.future.set_exception(error)
