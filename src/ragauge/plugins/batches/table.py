"""The open batches in a ledger: their requests, and the most that each can cost.

A batch has a row in `batches` and every request of it a row in `submitted`, both written before anything is sent. The
row of a request goes in the transaction that writes its reply, so a reply is charged once whoever reads it how often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ragauge.llms import databases
from ragauge.llms.ledger import Call, Ledger, put

if TYPE_CHECKING:
    from sqlalchemy import Connection

AT_ONCE = 500  # rows of one transaction


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
    from sqlalchemy import bindparam, text

    known = text("SELECT key FROM submitted WHERE key IN :keys").bindparams(bindparam("keys", expanding=True))

    def work(connection: Connection) -> tuple[set[str], float]:
        budget = requests[0].budget
        spent = databases.locked_sum(connection, budget)
        held = connection.execute(
            text("SELECT COALESCE(SUM(usd), 0) FROM reservations WHERE budget = :budget"), {"budget": budget}
        ).scalar_one()
        room = float("inf") if limit is None else limit * (1 + 1e-9) - spent - float(held)
        others = set(connection.execute(known, {"keys": [one.key for one in requests]}).scalars())
        entered = []
        for one in requests:
            if one.key in others:
                continue
            if one.usd > room:
                break
            room -= one.usd
            entered.append({**vars(one), "batch": batch.name})
        if entered:
            insert = "INSERT INTO batches (name, place) VALUES (:name, :place) ON CONFLICT (name) DO NOTHING"
            connection.execute(text(insert), {"name": batch.name, "place": batch.place})
            names = databases.SUBMITTED.split(", ")
            values = ", ".join(f":{name}" for name in names)
            connection.execute(text(f"INSERT INTO submitted ({databases.SUBMITTED}) VALUES ({values})"), entered)
        return {str(one["key"]) for one in entered}, room

    return ledger.transact(work)


def open_batches(ledger: Ledger, names: Sequence[str] | None = None) -> list[OpenBatch]:
    """The open batches of these names (all by default), the oldest first."""
    from sqlalchemy import text

    query = text("SELECT name, place, remote, sent_at FROM batches ORDER BY sent_at, name")
    found = ledger.transact(lambda c: [OpenBatch(*row) for row in c.execute(query)], write=False)
    return found if names is None else [batch for batch in found if batch.name in names]


def requests_of(ledger: Ledger, batch: str) -> dict[str, Request]:
    """A batch's requests without a reply in the ledger, by key."""
    from sqlalchemy import text

    query = text("SELECT key, request, budget, usd FROM submitted WHERE batch = :batch")
    rows = ledger.transact(lambda c: c.execute(query, {"batch": batch}).all(), write=False)
    return {row[0]: Request(*row) for row in rows}


def mark(ledger: Ledger, batch: str, remote: str = "", sent_at: float | None = None) -> None:
    """Records the provider's id of a batch, or the time of its creation."""
    from sqlalchemy import text

    column = "remote = :remote" if sent_at is None else "sent_at = :sent_at"
    values = {"name": batch, "remote": remote, "sent_at": sent_at}
    ledger.transact(lambda c: c.execute(text(f"UPDATE batches SET {column} WHERE name = :name"), values))


def settle(ledger: Ledger, batch: str, calls: Mapping[str, Call | None]) -> set[str]:
    """Removes these requests from the batch and writes their calls, None for one that cost nothing.

    Returns the keys that stood in the batch until now: what is settled already, by another process too, is left as it
    is.
    """
    from sqlalchemy import text

    query = text("DELETE FROM submitted WHERE key = :key AND batch = :batch")
    over = text("""DELETE FROM batches WHERE name = :batch
                   AND NOT EXISTS (SELECT 1 FROM submitted WHERE batch = :batch)""")

    def work(connection: Connection, some: Sequence[str]) -> list[str]:
        taken = [k for k in some if connection.execute(query, {"key": k, "batch": batch}).rowcount]
        for key in taken:
            if (call := calls[key]) is not None:
                put(connection, call)
        connection.execute(over, {"batch": batch})
        return taken

    keys, done = list(calls), set()
    for start in range(0, len(keys), AT_ONCE):
        done.update(ledger.transact(partial(work, some=keys[start : start + AT_ONCE])))
    return done


def close(ledger: Ledger, batch: str) -> None:
    """Forgets a batch; requests still in it may be submitted again."""
    from sqlalchemy import text

    def work(connection: Connection) -> None:
        connection.execute(text("DELETE FROM submitted WHERE batch = :batch"), {"batch": batch})
        connection.execute(text("DELETE FROM batches WHERE name = :batch"), {"batch": batch})

    ledger.transact(work)
