"""What a killed command may send again: what was in flight, and nothing whose reply the ledger had.

The chat server numbers what it receives and answers; the ledger is read between a kill and the next start.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chat_server import ChatServer, Logged, digest_of
from processes import Command, until


@dataclass(frozen=True)
class Kill:
    """A kill: how long the server's log was then, and the digests of the requests that the ledger held."""

    at: int
    recorded: frozenset[str]


@dataclass(frozen=True)
class Resent:
    """Of every kill how many requests were recorded, and in flight; of the latter how many were sent again.

    answered: how many of those that were sent again had been answered whole, with the reply not yet recorded.
    """

    recorded: tuple[int, ...]
    in_flight: tuple[int, ...]
    again: int
    answered: int


def kill_and_read(command: Command, server: ChatServer, folder: Path) -> Kill:
    """Kills a running command and, once the server is done with what it had sent, reads its ledger."""
    assert command.runs
    command.kill()
    seen = -1
    while seen != len(server.log):  # what still stood in a socket arrives, too
        seen = len(server.log)
        time.sleep(1)
        until(lambda: server.in_flight == 0, "the server's replies")
    return Kill(seen, frozenset(recorded_in(next(folder.rglob("ledger.db")))))


def recorded_in(ledger: Path) -> Counter[str]:
    """How many replies a ledger holds to the requests of each digest, read from a copy of its file."""
    with tempfile.TemporaryDirectory() as folder:
        for file in ledger.parent.glob(f"{ledger.name}*"):
            if file.name in (ledger.name, f"{ledger.name}-wal"):
                shutil.copy(file, folder)
        connection = sqlite3.connect(Path(folder) / ledger.name)
        try:
            rows = connection.execute("SELECT request, reply FROM calls").fetchall()
        finally:
            connection.close()
    known = [json.loads(request) for request, reply in rows if json.loads(reply)["text"] is not None]
    return Counter(digest_of(request["messages"][-1][-1]) for request in known)


def check_kills(log: Sequence[Logged], kills: Sequence[Kill], concurrency: int) -> Resent:
    """AssertionError where a request came again that was recorded, or that no kill had cut off.

    For runs in which no request fails or has an unreadable reply: such a one is sent again on purpose.
    """
    starts = [0, *(kill.at for kill in kills)]
    cut_off: list[frozenset[str]] = []
    for start, kill in zip(starts, kills, strict=False):
        received = {one.digest for one in log[start : kill.at] if one.event == "received"}
        cut_off.append(frozenset(received - kill.recorded))
        assert len(cut_off[-1]) <= concurrency, "more were in flight than may be at a time"
        later = [one for one in log[kill.at :] if one.event == "received"]
        late = [one.number for one in later if one.digest in kill.recorded]
        assert not late, f"received again after their replies were recorded: {late}"
    last: dict[str, int] = {}  # where a request was last received
    again = answered = 0
    for place, one in enumerate(log):
        if one.event != "received":
            continue
        if (before := last.get(one.digest)) is not None:
            between = [i for i, kill in enumerate(kills) if before < kill.at <= place]
            assert any(one.digest in cut_off[i] for i in between), f"{one.number} was not in flight at a kill"
            again += 1
            answered += any(old.digest == one.digest and old.event == "answered" for old in log[before:place])
        last[one.digest] = place
    counts = tuple(len(kill.recorded) for kill in kills)
    return Resent(counts, tuple(map(len, cut_off)), again, answered)
