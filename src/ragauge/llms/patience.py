"""How long calls wait for their server: for a late reply, a model that loads, a server that restarts or is not there.

A reply that is late gets twice the time with every further attempt, since a server with few slots lets requests
queue. A server that loads its model (status 503) or is gone after it was there is waited for up to `max_wait` seconds;
such attempts count as none. Where nothing ever listened at an address of this machine, the second refusal is the end.
"""

from __future__ import annotations

import logging
import re
import time
from dataclasses import dataclass

from ragauge.llms.addresses import is_here

log = logging.getLogger(__name__)

LOADING = 503  # llama.cpp, TGI and Ollama while they load a model; providers that are overloaded
_UNLOADED = re.compile(r"model (is )?unloaded", re.IGNORECASE)  # LM Studio, with status 400; the next request loads it
_MOST_DOUBLED = 4  # a fifth attempt has sixteen times `timeout`, as has each later one
_SECONDS_BETWEEN = (0.5, 5.0)  # two looks at a server that is away: the first, and at most


def is_loading(status: int | None, told: str) -> bool:
    """Whether a refusal means that the server's model is not in memory now."""
    return status == LOADING or (status == 400 and _UNLOADED.search(told) is not None)


_REACHED = set[str]()  # models and addresses with which this process had a connection


@dataclass
class Patience:
    """A batch's record of its server's absences.

    what, place: the batch and its model's address, for messages.   most: seconds that an absence may last.
    key_env: the environment variable that holds the key, for messages.
    """

    what: str
    place: str
    address: str
    timeout: float
    most: float
    concurrency: int | str
    key_env: str | None = None
    refused: int = 0  # attempts without a connection before one was made
    since: float | None = None  # when the present absence began
    late: bool = False  # whether a late reply was told

    @property
    def reached(self) -> bool:
        """Whether this process ever had a connection to the server."""
        return self.place in _REACHED

    def reach(self) -> None:
        """A connection was made."""
        _REACHED.add(self.place)

    def seconds(self, n_late: int) -> float:
        """The time of an attempt after so many that were late."""
        return self.timeout * 2 ** min(n_late, _MOST_DOUBLED)

    def tell_late(self, seconds: float, last: bool) -> None:
        """Warns of the first late reply, and of the likely reason."""
        if not self.late:
            log.warning(
                "%s: no reply within %g s from %s%s. A server that works on fewer requests at once than "
                "concurrency=%s lets the others queue: lower it, or raise timeout",
                *(self.what, seconds, self.place, "" if last else f"; asked again with {self.seconds(1):g} s"),
                self.concurrency,
            )
        self.late = True

    def answered(self) -> None:
        """A reply came, or a refusal that only a server in service gives."""
        self.reach()
        if self.since is not None:
            log.warning("%s: %s is back after %.0f s", self.what, self.place, time.monotonic() - self.since)
            self.since = None

    def never_there(self) -> bool:
        """Counts a refused connection: whether nothing listens at an address of this machine."""
        if self.reached:
            return False
        self.refused += 1
        return self.refused > 1 and is_here(self.address)

    def pause(self, why: str, asked: float, n: int) -> float | None:
        """The seconds to wait before the n-th further look (from 0); None once the absence has lasted too long.

        asked: the seconds that the server asks for, 0 without.
        """
        now = time.monotonic()
        if self.since is None:
            self.since = now
            log.warning(
                "%s: %s is not in service (%s); waited for, %g s at most", self.what, self.place, why, self.most
            )
        if now - self.since >= self.most:
            return None
        first, most = _SECONDS_BETWEEN
        return min(max(asked, min(first * 2**n, most)), self.most - (now - self.since))
