"""What calls in flight may cost, reserved in the ledger's database, where all processes of a budget see it.

A call reserves its bound, or the largest bill above its bound that the budget and model have had. Until their
first bill is known, one call is in flight at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS reservations (
        key TEXT PRIMARY KEY,
        budget TEXT NOT NULL,
        model TEXT NOT NULL,
        usd DOUBLE PRECISION NOT NULL
    )""",
    """CREATE TABLE IF NOT EXISTS bills (
        budget TEXT NOT NULL,
        model TEXT NOT NULL,
        largest_usd DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (budget, model)
    )""",
)
_RESERVE = """INSERT INTO reservations (key, budget, model, usd) VALUES (:key, :budget, :model, :usd)
              ON CONFLICT (key) DO UPDATE SET budget = excluded.budget, model = excluded.model,
                                              usd = excluded.usd"""
_LEARN = """INSERT INTO bills (budget, model, largest_usd) VALUES (:budget, :model, :usd)
            ON CONFLICT (budget, model) DO UPDATE SET largest_usd = excluded.largest_usd
            WHERE bills.largest_usd < excluded.largest_usd"""


@dataclass(frozen=True)
class Planned:
    """A call that is about to be made: its key, and US dollars: `bound` for it, `limit` for its budget."""

    key: str
    budget: str
    model: str
    bound: float
    limit: float


@dataclass(frozen=True)
class Room:
    """What a budget has for a call: whether it was reserved, and US dollars.

    needed: what the call reserves.   spent: what the budget has spent.   others: keys of calls that reserve.
    """

    reserved: bool
    needed: float
    spent: float
    others: tuple[str, ...]


def reserve(connection: Connection, call: Planned) -> Room:
    """Reserves what the call may cost if its budget holds that beside all reservations."""
    from sqlalchemy import text

    # From reading the sums to writing the row no other process may do the same.
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.execute(text("SELECT pg_advisory_xact_lock(7242)"))
    about = {"budget": call.budget, "key": call.key}
    spent = connection.execute(text("SELECT spent_usd FROM budgets WHERE budget = :budget"), about).scalar()
    bills = connection.execute(text("SELECT model, largest_usd FROM bills WHERE budget = :budget"), about)
    largest = {model: float(usd) for model, usd in bills}
    query = text("SELECT key, model, usd FROM reservations WHERE budget = :budget AND key <> :key")
    others = connection.execute(query, about).all()
    needed = max(call.bound, largest.get(call.model, 0.0))
    held = sum(max(usd, largest.get(model, 0.0)) for _, model, usd in others)
    alone = call.model in largest or call.model not in {model for _, model, _ in others}
    reserved = alone and float(spent or 0.0) + held + needed <= call.limit
    if reserved:
        connection.execute(text(_RESERVE), {**about, "model": call.model, "usd": needed})
    return Room(reserved, needed, float(spent or 0.0), tuple(key for key, _, _ in others))


def settle(connection: Connection, call: Planned, billed: float | None) -> None:
    """Ends the call's reservation, and keeps what it was billed where that is more than its bound.

    billed: US dollars; None where it was not charged.
    """
    from sqlalchemy import text

    drop(connection, call.key)
    if billed is not None:
        usd = billed if billed > call.bound else 0.0
        connection.execute(text(_LEARN), {"budget": call.budget, "model": call.model, "usd": usd})


def drop(connection: Connection, key: str) -> None:
    """Ends a reservation."""
    from sqlalchemy import text

    connection.execute(text("DELETE FROM reservations WHERE key = :key"), {"key": key})
