"""The open batches in a ledger: their requests, and the most that each can cost.

A batch has a row in `batches` and every request of it one in `claims`, both written before anything is sent. The
row of a request goes in the transaction that writes its reply, so a reply is charged once whoever reads it how often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ragauge.llms import databases
from ragauge.llms.databases import Database
from ragauge.llms.finished import Call, put
from ragauge.llms.ledger import Ledger

AT_ONCE = 500  # rows of one transaction
_ENTER = """INSERT INTO claims (key, budget, usd, batch, request) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (key) DO UPDATE SET owner = '', budget = excluded.budget, usd = excluded.usd,
            batch = excluded.batch, request = excluded.request"""


@dataclass(frozen=True)
class Request:
    """A request under its ledger key, its largest possible cost in US dollars, and its budget's name."""

    key: str
    request: str
    budget: str
    usd: float


@dataclass(frozen=True)
class OpenBatch:
    """A batch with replies missing from the ledger.

    name: our own, which stands in the provider's metadata. place: the address of the provider. remote: the provider's
    id, "" where it is not known. sent_at: when its creation was about to be sent, in seconds since 1970; 0 before that.
    """

    name: str
    place: str
    remote: str
    sent_at: float


def enter(ledger: Ledger, batch: OpenBatch, requests: Sequence[Request], limit: float | None) -> tuple[set[str], float]:
    """Writes the requests that are in no batch and affordable; returns their keys, and the money left.

    limit: US dollars for what the budget has spent, submitted and reserved together; None for no limit. Money left is
    inf without a limit, and else the room that the first request found that did not fit, or that was left in the end.
    """

    def work(db: Database) -> tuple[set[str], float]:
        budget = requests[0].budget
        in_flight = db.execute("SELECT COALESCE(SUM(usd), 0) FROM claims WHERE budget = ?", [budget]).fetchone()[0]
        room = float("inf")
        if limit is not None:
            room = limit * (1 + 1e-9) - databases.spent(db, budget) - float(in_flight)
        rows = db.among("SELECT key, batch FROM claims WHERE key IN", [one.key for one in requests])
        others = {key for key, name in rows if name}
        entered: list[Request] = []
        for one in requests:
            if one.key in others:
                continue
            if one.usd > room:
                break
            room -= one.usd
            entered.append(one)
        if entered:
            insert = "INSERT INTO batches (name, place) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
            db.execute(insert, [batch.name, batch.place])
            db.executemany(_ENTER, [(one.key, one.budget, one.usd, batch.name, one.request) for one in entered])
        return {one.key for one in entered}, room

    return ledger.transact(work)


def open_batches(ledger: Ledger, names: Sequence[str] | None = None) -> list[OpenBatch]:
    """The open batches of these names (all by default), the oldest first."""
    query = "SELECT name, place, remote, sent_at FROM batches ORDER BY sent_at, name"
    rows = ledger.transact(lambda db: db.execute(query).fetchall(), write=False)
    return [OpenBatch(*row) for row in rows if names is None or row[0] in names]


def requests_of(ledger: Ledger, batch: str) -> dict[str, Request]:
    """A batch's requests without a reply in the ledger, by key."""
    query = "SELECT key, request, budget, usd FROM claims WHERE batch = ?"
    rows = ledger.transact(lambda db: db.execute(query, [batch]).fetchall(), write=False)
    return {row[0]: Request(*row) for row in rows}


def mark(ledger: Ledger, batch: str, remote: str = "", sent_at: float | None = None) -> None:
    """Records the provider's id of a batch, or the time of its creation."""
    column, value = ("remote", remote) if sent_at is None else ("sent_at", sent_at)
    ledger.transact(lambda db: db.execute(f"UPDATE batches SET {column} = ? WHERE name = ?", [value, batch]))


def settle(ledger: Ledger, batch: str, calls: Mapping[str, Call | None]) -> set[str]:
    """Removes these requests from the batch and writes their calls, None for one that cost nothing.

    Returns the keys that stood in the batch until now: what is settled already, by another process too, is left as it
    is.
    """

    def work(db: Database, some: Sequence[str]) -> list[str]:
        rows = db.among("SELECT key, batch FROM claims WHERE key IN", some)
        taken = [key for key, name in rows if name == batch]
        db.executemany("DELETE FROM claims WHERE key = ?", [(key,) for key in taken])
        put(db, [(call, None) for key in taken if (call := calls[key]) is not None])
        over = "DELETE FROM batches WHERE name = ? AND NOT EXISTS (SELECT 1 FROM claims WHERE batch = ?)"
        db.execute(over, [batch, batch])
        return taken

    keys, done = list(calls), set()
    for start in range(0, len(keys), AT_ONCE):
        done.update(ledger.transact(partial(work, some=keys[start : start + AT_ONCE])))
    return done


def close(ledger: Ledger, batch: str) -> None:
    """Forgets a batch; requests still in it may be submitted again."""

    def work(db: Database) -> None:
        db.execute("DELETE FROM claims WHERE batch = ?", [batch])
        db.execute("DELETE FROM batches WHERE name = ?", [batch])

    ledger.transact(work)
