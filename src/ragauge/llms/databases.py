"""Databases of a call ledger: tables, SQLite files and servers, and recovery of damaged files.

They hold what calls in flight may cost, too, where all processes of a budget see it. A call reserves its bound,
or the largest bill above its bound that the budget and model have had. Until their first bill is known, one
call is in flight at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from ragauge.contract.errors import ConfigError, DataError, HeldError
from ragauge.contract.extras import require_extra
from ragauge.llms import postgres

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.exc import DBAPIError


_RESERVATIONS = (
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
# Requests that stand in a provider's batch, with what each can cost at most, until their replies are in `calls`.
_BATCHES = (
    """CREATE TABLE IF NOT EXISTS batches (
        name TEXT PRIMARY KEY,
        place TEXT NOT NULL,
        remote TEXT NOT NULL DEFAULT '',
        sent_at DOUBLE PRECISION NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE IF NOT EXISTS submitted (
        key TEXT PRIMARY KEY,
        batch TEXT NOT NULL,
        request TEXT NOT NULL,
        budget TEXT NOT NULL,
        usd DOUBLE PRECISION NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS submitted_batch ON submitted (batch)",
    "CREATE INDEX IF NOT EXISTS submitted_budget ON submitted (budget, usd)",
)
_RESERVE = """INSERT INTO reservations (key, budget, model, usd) VALUES (:key, :budget, :model, :usd)
              ON CONFLICT (key) DO UPDATE SET budget = excluded.budget, model = excluded.model,
                                              usd = excluded.usd"""
_LEARN = """INSERT INTO bills (budget, model, largest_usd) VALUES (:budget, :model, :usd)
            ON CONFLICT (budget, model) DO UPDATE SET largest_usd = excluded.largest_usd
            WHERE bills.largest_usd < excluded.largest_usd"""


@dataclass(frozen=True)
class Planned:
    """A planned call: its key, its highest cost `bound` and its budget's `limit` in US dollars."""

    key: str
    budget: str
    model: str
    bound: float
    limit: float


@dataclass(frozen=True)
class Room:
    """A budget's room for a call: whether it was reserved, and US dollars.

    needed: reserved by the call.   spent: by the budget so far, or submitted in a batch.   others: keys of calls that
    reserve.
    """

    reserved: bool
    needed: float
    spent: float
    others: tuple[str, ...]


def reserve(connection: Connection, call: Planned) -> Room:
    """Reserves the call's highest cost if its budget allows it beside all reservations."""
    from sqlalchemy import text

    spent = locked_sum(connection, call.budget)
    about = {"budget": call.budget, "key": call.key}
    bills = connection.execute(text("SELECT model, largest_usd FROM bills WHERE budget = :budget"), about)
    largest = {model: float(usd) for model, usd in bills}
    query = text("SELECT key, model, usd FROM reservations WHERE budget = :budget AND key <> :key")
    others = connection.execute(query, about).all()
    needed = max(call.bound, largest.get(call.model, 0.0))
    held = sum(max(usd, largest.get(model, 0.0)) for _, model, usd in others)
    alone = call.model in largest or call.model not in {model for _, model, _ in others}
    reserved = alone and spent + held + needed <= call.limit
    if reserved:
        connection.execute(text(_RESERVE), {**about, "model": call.model, "usd": needed})
    return Room(reserved, needed, spent, tuple(key for key, _, _ in others))


def locked_sum(connection: Connection, budget: str) -> float:
    """US dollars spent or submitted under a budget, locked against other processes until the transaction ends."""
    from sqlalchemy import text

    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.execute(text("SELECT pg_advisory_xact_lock(7242)"))
    query = text("""SELECT (SELECT COALESCE(SUM(spent_usd), 0) FROM budgets WHERE budget = :budget)
                         + (SELECT COALESCE(SUM(usd), 0) FROM submitted WHERE budget = :budget)""")
    return float(connection.execute(query, {"budget": budget}).scalar_one())


def settle(connection: Connection, call: Planned, billed: float | None) -> None:
    """Ends the call's reservation; records its bill if that exceeds the bound.

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


log = logging.getLogger(__name__)

# SQLite's write-ahead log is shared memory, which machines do not share.
_NETWORK_FILE_SYSTEMS = re.compile(r"nfs|cifs|smb|ceph|lustre|gpfs|beegfs|gluster|sshfs|afs")
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS calls (
        key TEXT PRIMARY KEY,
        request TEXT NOT NULL,
        reply TEXT NOT NULL,
        cost_usd DOUBLE PRECISION NOT NULL,
        budget TEXT NOT NULL,
        digest TEXT NOT NULL DEFAULT '',
        created TIMESTAMP DEFAULT CURRENT_TIMESTAMP
    )""",
    # Serves the check of the sums alone; a sum is never taken over the calls while calls are made.
    "CREATE INDEX IF NOT EXISTS calls_budget ON calls (budget, cost_usd)",
    "CREATE TABLE IF NOT EXISTS budgets (budget TEXT PRIMARY KEY, spent_usd DOUBLE PRECISION NOT NULL)",
    """CREATE TABLE IF NOT EXISTS served (
        address TEXT NOT NULL,
        model TEXT NOT NULL,
        identity TEXT NOT NULL,
        budget TEXT NOT NULL,
        seen TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        PRIMARY KEY (address, model)
    )""",
    *_RESERVATIONS,
    *_BATCHES,
)
_CACHE_KIB = 65_536
HELD_SECONDS = 60.0  # that a file which another process holds is waited for
ROW = "key, request, reply, cost_usd, budget, digest"
SUBMITTED = "key, batch, request, budget, usd"  # the columns of `submitted`
# When a call was added, in seconds since 1970, by the name of the database.
ADDED = {
    "sqlite": "CAST(strftime('%s', created) AS REAL)",
    "postgresql": "EXTRACT(EPOCH FROM CAST(created AS TIMESTAMP WITH TIME ZONE))",
}
_TOO_SMALL = """
    SELECT rows.budget FROM (SELECT budget, SUM(cost_usd) AS total FROM calls GROUP BY budget) AS rows
    LEFT JOIN budgets ON budgets.budget = rows.budget
    WHERE budgets.budget IS NULL OR budgets.spent_usd < rows.total - 1e-9 * ABS(rows.total)"""
_RAISE = """
    INSERT INTO budgets (budget, spent_usd) VALUES (:budget, :spent) ON CONFLICT (budget)
    DO UPDATE SET spent_usd = excluded.spent_usd WHERE budgets.spent_usd < excluded.spent_usd"""


def row_digest(key: object, request: object, reply: object, cost_usd: object, budget: object) -> str:
    """SHA-256 (hex) over a row of `calls`."""
    return hashlib.sha256(json.dumps([key, request, reply, cost_usd, budget]).encode()).hexdigest()


def holds(row: Any) -> bool:
    """True if a row of `calls` (the columns of ROW) is unchanged since it was written."""
    return bool(row_digest(*row[:5]) == row[5])


def is_damaged(error: DBAPIError) -> bool:
    """True if SQLite cannot read a page of the file."""
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_held(error: DBAPIError) -> bool:
    """True if another process holds the database or a lock of it beyond the waiting time."""
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or postgres.is_locked(error.orig)


def held(where: str | Path) -> HeldError:
    """The error of a ledger that another process holds."""
    return HeldError(
        f"ledger: another process holds {where}, for longer than it was waited for; nothing is lost, and the same "
        "command goes on when that process is done"
    )


@contextlib.contextmanager
def _prepared_alone(path: Path) -> Iterator[None]:
    """Holds the lock beside a ledger's file for making, upgrading or salvaging it. Raises HeldError."""
    lock = FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=HELD_SECONDS)
    except Timeout:
        raise held(path) from None
    try:
        yield
    finally:
        lock.release()


def file_engine(path: Path) -> Engine:
    """The SQLite ledger at a path, made or upgraded where needed. Raises SQLAlchemy's DatabaseError, HeldError."""
    from sqlalchemy import create_engine, event

    kind = _file_system(path.parent)
    if _NETWORK_FILE_SYSTEMS.search(kind):
        log.warning(
            "ledger: %s is on %s, where two machines at once would damage it; a team's ledger is PostgreSQL: "
            "RAGAUGE_LEDGER=postgresql://... (docs/team.md)",
            path,
            kind,
        )
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": HELD_SECONDS})

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, _: Any) -> None:
        # A commit is on the disk when it returns (3 ms): it survives a kill and a power cut.
        connection.execute("PRAGMA synchronous=FULL")
        # Keys are random: with 2 MB, the default, each call of a large ledger reads pages of the index anew.
        connection.execute(f"PRAGMA cache_size={-_CACHE_KIB}")
        # A flipped bit that leaves no UTF-8 is found by the row's digest.
        connection.text_factory = lambda data: data.decode("utf-8", "replace")

    # Two processes that turn on the write-ahead log at once would get "database is locked".
    with _prepared_alone(path):
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        with engine.begin() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            _prepare(connection)
    return engine


def server_engine(where: str) -> Engine:
    """The PostgreSQL ledger at a URL. Raises ConfigError for a URL that cannot be used, HeldError."""
    from sqlalchemy import exc, text
    from sqlalchemy.engine import make_url

    try:
        url = make_url(where)
    except (exc.ArgumentError, ValueError):
        raise ConfigError("ledger: not a database URL; allowed: a file path or postgresql://...") from None
    if url.password is not None or any("pass" in name for name in url.query):
        raise ConfigError("ledger: no password in the URL; PGPASSWORD or ~/.pgpass hold it")
    if url.get_backend_name() != "postgresql":
        raise ConfigError(f"ledger: {url.drivername}:// is not allowed; a file path or postgresql://... is")
    require_extra("ledger=postgresql://...", "psycopg")
    engine = postgres.engine_at(url)
    try:
        with engine.begin() as connection:
            # CREATE TABLE IF NOT EXISTS of two processes at once can fail in PostgreSQL.
            connection.execute(text("SELECT pg_advisory_xact_lock(7241)"))
            _prepare(connection)
    except exc.OperationalError as error:
        if is_held(error):
            raise held(url.render_as_string()) from None
        raise ConfigError(f"ledger: {url.render_as_string()}: {' '.join(str(error.orig).split())}") from None
    return engine


def _prepare(connection: Connection) -> None:
    """Makes missing tables, and checks the sums."""
    from sqlalchemy import text

    for statement in SCHEMA:
        connection.execute(text(statement))
    for (budget,) in connection.execute(text(_TOO_SMALL)).all():
        rows = connection.execute(text(f"SELECT {ROW} FROM calls WHERE budget = :b"), {"b": budget}).all()
        spent = math.fsum(row[3] for row in rows if holds(row))
        connection.execute(text(_RAISE), {"budget": budget, "spent": spent})


def not_a_ledger(path: Path, error: DBAPIError) -> DataError | HeldError:
    """The error for a file that cannot be opened."""
    return held(path) if is_held(error) else DataError(f"{path} cannot be opened as a call ledger: {error.orig}")


def _file_system(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The type of the folder's file system, such as ext4; "" if unknown."""
    try:
        table = [line.split() for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines()]
    except OSError:
        return ""
    at = folder.resolve()
    # Of several file systems at one place the last mounted is seen; spaces are written as \\040.
    holding = [
        (len(place), number, kind)
        for number, (_, place, kind, *_) in enumerate(table)
        if at.is_relative_to(place.replace("\\040", " "))
    ]
    return max(holding)[2] if holding else ""


_ROWS_AT_ONCE = 4096
_SMALLEST_ROW = 64  # bytes: the digest alone has as many


def salvage(path: Path, damaged_file: int) -> None:
    """Replaces the ledger at `path`, and keeps the damaged file beside it under a telling name.

    `damaged_file` is the inode that was found damaged: where another process has replaced it, nothing is
    done. A writer to the old file waits until the fresh one is in its place. It must then look whether the path still
    leads to the file that it wrote to (Ledger does). Raises sqlite3.Error or OSError where the file cannot be read at
    all.
    """
    with _prepared_alone(path):
        if not path.exists() or path.stat().st_ino != damaged_file:
            return
        old = sqlite3.connect(path, timeout=HELD_SECONDS, isolation_level=None)
        old.text_factory = lambda data: data.decode("utf-8", "replace")
        fresh = path.with_name(f"{path.name}.fresh")
        fresh.unlink(missing_ok=True)
        try:
            old.execute("BEGIN IMMEDIATE")  # nobody writes to the damaged file from here on
            kept = _copy(old, fresh, path.stat().st_size)
            aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
            if os.name == "nt":
                old.close()  # Windows replaces no open file
            os.link(path, aside)  # a second name, so that there is a ledger at the path at any time
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.rename(f"{path}{suffix}", f"{aside}{suffix}")
            os.replace(fresh, path)
        finally:
            old.close()
            fresh.unlink(missing_ok=True)
    log.warning(
        "ledger: %s was damaged; %d call(s) could be read and are in a fresh file, the others are asked "
        "again; the damaged file is kept as %s",
        path,
        kept,
        aside.name,
    )


def _copy(old: sqlite3.Connection, fresh: Path, size: int) -> int:
    """Writes the readable, unchanged rows into a new ledger; returns their number."""
    new = sqlite3.connect(fresh, isolation_level=None)
    try:
        new.execute("PRAGMA synchronous=FULL")
        new.execute("BEGIN")
        for statement in SCHEMA:
            new.execute(statement)
        for rows in _readable(old, f"{ROW}, created", "calls", size):
            good = [row for row in rows if holds(row)]
            new.executemany(f"INSERT OR IGNORE INTO calls ({ROW}, created) VALUES (?,?,?,?,?,?,?)", good)
        # What was spent stays spent, whichever rows are lost.
        for rows in _readable(old, "budget, spent_usd", "budgets", size):
            new.executemany("INSERT OR IGNORE INTO budgets VALUES (?,?)", rows)
        for rows in _readable(old, "address, model, identity, budget", "served", size):
            insert = "INSERT OR IGNORE INTO served (address, model, identity, budget) VALUES (?,?,?,?)"
            new.executemany(insert, rows)
        for columns, table in (("name, place, remote, sent_at", "batches"), (SUBMITTED, "submitted")):
            with contextlib.suppress(sqlite3.DatabaseError):  # the ledger of an earlier version has no such table
                for rows in _readable(old, columns, table, size):
                    marks = ",".join("?" * (columns.count(",") + 1))
                    new.executemany(f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})", rows)
        new.execute("COMMIT")
        new.execute("PRAGMA journal_mode=WAL")
        return int(new.execute("SELECT COUNT(*) FROM calls").fetchone()[0])
    finally:
        new.close()


def _readable(old: sqlite3.Connection, columns: str, table: str, size: int) -> Iterator[list[tuple]]:
    """The readable rows of a table; halves ranges that fail."""
    query = f"SELECT {columns} FROM {table} NOT INDEXED WHERE rowid BETWEEN ? AND ?"
    old.execute(query, (0, 0))  # fails where there is no such table at all
    try:
        last = int(old.execute(f"SELECT MAX(rowid) FROM {table}").fetchone()[0] or 0)
    except sqlite3.DatabaseError:
        last = size // _SMALLEST_ROW
    ranges = [(at, at + _ROWS_AT_ONCE - 1) for at in range(1, last + 1, _ROWS_AT_ONCE)][::-1]
    while ranges:
        first, end = ranges.pop()
        try:
            rows = old.execute(query, (first, end)).fetchall()
        except sqlite3.DatabaseError:
            middle = (first + end) // 2
            if first < end:
                ranges += [(middle + 1, end), (first, middle)]
            continue
        yield rows
