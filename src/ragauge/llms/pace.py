"""How many calls are in flight at a server, found by trying: `concurrency=auto`."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from ragauge.llms.addresses import is_own

FOUND = "auto"  # the value of `concurrency` that finds the number
FIRST = 4  # calls in flight at the beginning
_MOST_OWN, _MOST = 256, 64  # at a server on this machine or network, and at any other
_GAIN = 1.1  # of calls a second; a server that gains less by twice as many in flight is at its limit


class Pace:
    """The calls that may be in flight at one server, over all batches of a process.

    A round is twice as many answers as may be in flight; its second half is timed. After a round twice as many are
    allowed, until that brings no tenth more calls a second: then half of them stay. A refusal or a time-out halves the
    number, and from then on a round allows one more.
    """

    def __init__(self, most: int) -> None:
        self.allowed = min(FIRST, most)
        self._most = most
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._was_refused = False
        self._speed = 0.0  # calls a second of the last round
        self._begin_round()

    def _begin_round(self) -> None:
        self._answers = 0
        self._changed = self._timed_from = time.monotonic()

    async def enter(self) -> None:
        """Returns when one more call may be made."""
        while self._in_flight >= self.allowed:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                self._wake()  # it may have been this one's turn
                raise
        self._in_flight += 1

    def leave(self) -> None:
        """Ends what `enter` began."""
        self._in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        free = self.allowed - self._in_flight
        while free > 0 and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                free -= 1

    def answered(self) -> None:
        """Counts an answer."""
        self._answers += 1
        if self._answers == self.allowed:
            self._timed_from = time.monotonic()
        if self._answers < 2 * self.allowed:
            return
        speed = self.allowed / max(time.monotonic() - self._timed_from, 1e-6)
        if not self._waiting or self.allowed >= self._most:  # fewer calls were to be made than could be
            pass
        elif self._was_refused:
            self.allowed += 1
        elif speed < _GAIN * self._speed:
            self.allowed = self._most = self.allowed // 2
        else:
            self._speed, self.allowed = speed, min(2 * self.allowed, self._most)
        self._begin_round()
        self._wake()

    def refused(self, began: float) -> None:
        """Halves the number for a refusal or time-out of a call that began then, by time.monotonic."""
        if began < self._changed:  # of calls that were in flight together one counts
            return
        self._was_refused = True
        self.allowed = max(1, self.allowed // 2)
        self._begin_round()


def most_in_flight(chat: Mapping[str, Any]) -> int:
    """How many calls `auto` may find for a chat model, by its address."""
    address = str(chat.get("base_url") or "")
    own = is_own(address) if address else "ollama" in str(chat["_target_"])
    return _MOST_OWN if own else _MOST
