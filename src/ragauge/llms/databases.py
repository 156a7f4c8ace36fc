"""The tables of a call ledger, in a SQLite file or on a server, and recovery of damaged files."""

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
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from ragauge.contract.errors import DataError, HeldError
from ragauge.llms import claims

log = logging.getLogger(__name__)

# calls: the finished ones. claims: the requests in flight, each with the process that asks (owner) and the most that
# it can cost, and those in a provider's batch, without an owner, until their replies are in `calls`. budgets: what was
# spent, and by model the largest bill above its bound ("" where a call's model is not known).
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS calls (
        key TEXT PRIMARY KEY, request TEXT NOT NULL, reply TEXT NOT NULL, cost_usd DOUBLE PRECISION NOT NULL,
        budget TEXT NOT NULL, digest TEXT NOT NULL, added DOUBLE PRECISION NOT NULL)""",
    # Serves the check of the sums alone; a sum is never taken over the calls while calls are made.
    "CREATE INDEX IF NOT EXISTS calls_budget ON calls (budget, cost_usd)",
    """CREATE TABLE IF NOT EXISTS claims (
        key TEXT PRIMARY KEY, owner TEXT NOT NULL DEFAULT '', budget TEXT NOT NULL DEFAULT '',
        model TEXT NOT NULL DEFAULT '', usd DOUBLE PRECISION NOT NULL DEFAULT 0,
        batch TEXT NOT NULL DEFAULT '', request TEXT NOT NULL DEFAULT '')""",
    "CREATE INDEX IF NOT EXISTS claims_budget ON claims (budget)",
    "CREATE INDEX IF NOT EXISTS claims_batch ON claims (batch)",
    """CREATE TABLE IF NOT EXISTS budgets (
        budget TEXT NOT NULL, model TEXT NOT NULL, spent_usd DOUBLE PRECISION NOT NULL,
        largest_usd DOUBLE PRECISION NOT NULL, PRIMARY KEY (budget, model))""",
    """CREATE TABLE IF NOT EXISTS served (
        address TEXT NOT NULL, model TEXT NOT NULL, identity TEXT NOT NULL, budget TEXT NOT NULL,
        PRIMARY KEY (address, model))""",
    """CREATE TABLE IF NOT EXISTS batches (
        name TEXT PRIMARY KEY, place TEXT NOT NULL, remote TEXT NOT NULL DEFAULT '',
        sent_at DOUBLE PRECISION NOT NULL DEFAULT 0)""",
)
ROW = "key, request, reply, cost_usd, budget, digest"
HELD_SECONDS = 60.0  # that a file which another process holds is waited for
_CACHE_KIB = 65_536
_KEYS_PER_QUERY = 500  # below every database's limit of bound values
# SQLite's write-ahead log is shared memory, which machines do not share.
_NETWORK_FILE_SYSTEMS = re.compile(r"nfs|cifs|smb|ceph|lustre|gpfs|beegfs|gluster|sshfs|afs")
_TOO_SMALL = """
    SELECT rows.budget FROM (SELECT budget, SUM(cost_usd) AS total FROM calls GROUP BY budget) AS rows
    LEFT JOIN (SELECT budget, SUM(spent_usd) AS spent FROM budgets GROUP BY budget) AS sums ON sums.budget = rows.budget
    WHERE sums.budget IS NULL OR sums.spent < rows.total - 1e-9 * ABS(rows.total)"""
_RAISE = """
    INSERT INTO budgets (budget, model, spent_usd, largest_usd) VALUES (?, '', ?, 0)
    ON CONFLICT (budget, model) DO UPDATE SET spent_usd = budgets.spent_usd + excluded.spent_usd"""


class Database(ABC):
    """A connection to a ledger's tables. Statements are plain SQL, with ? for each value.

    begin(durable): begins a transaction once no other process writes; durable: it is to survive a power cut.
    flush(): returns when what was committed is on the disk. is_lost(): whether it no longer leads to the ledger.
    come(name), leave(name): shows other processes that `name` lives, until then or the end of this process.
    is_gone(name): whether no process is there under that name.
    """

    where: str
    errors: tuple[type[Exception], ...]  # what its statements raise
    inode = 0  # of a file

    @abstractmethod
    def execute(self, statement: str, values: Sequence[object] = ()) -> Any: ...
    @abstractmethod
    def executemany(self, statement: str, rows: Sequence[Sequence[object]]) -> None: ...
    @abstractmethod
    def begin(self, durable: bool) -> None: ...
    @abstractmethod
    def flush(self) -> None: ...
    @abstractmethod
    def is_lost(self) -> bool: ...
    @abstractmethod
    def come(self, name: str) -> None: ...
    @abstractmethod
    def is_gone(self, name: str) -> bool: ...
    @abstractmethod
    def leave(self, name: str) -> None: ...
    @abstractmethod
    def close(self) -> None: ...

    def among(self, statement: str, keys: Sequence[str]) -> list[tuple[Any, ...]]:
        """The rows of a statement that ends with `IN`, for any number of keys."""
        found: list[tuple[Any, ...]] = []
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            some = keys[start : start + _KEYS_PER_QUERY]
            found += self.execute(f"{statement} ({', '.join('?' * len(some))})", some).fetchall()
        return found

    @contextlib.contextmanager
    def writing(self, durable: bool) -> Iterator[Self]:
        """One transaction, committed at the end."""
        try:
            self.begin(durable)
            yield self
            self.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(*self.errors):
                self.execute("ROLLBACK")
            raise
        if durable:
            self.flush()


class SqliteFile(Database):
    """The ledger at a path, made where there is none. Raises sqlite3.Error, HeldError."""

    errors = (sqlite3.Error,)

    def __init__(self, path: Path) -> None:
        kind = _file_system(path.parent)
        if _NETWORK_FILE_SYSTEMS.search(kind):
            log.warning(
                "ledger: %s is on %s, where two machines at once would damage it; a team's ledger is PostgreSQL: "
                "RAGAUGE_LEDGER=postgresql://... (docs/team.md)",
                path,
                kind,
            )
        self.where, self._path = str(path), path
        self._file = sqlite3.connect(path, timeout=HELD_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            # A commit is flushed here, after it: other processes may write meanwhile.
            self.execute("PRAGMA synchronous=NORMAL")
            # Keys are random: with 2 MB, the default, each call of a large ledger reads pages of the index anew.
            self.execute(f"PRAGMA cache_size={-_CACHE_KIB}")
            # A flipped bit that leaves no UTF-8 is found by the row's digest.
            self._file.text_factory = lambda data: data.decode("utf-8", "replace")
            # Two processes that turn on the write-ahead log at once would get "database is locked".
            with _prepared_alone(path):
                self.execute("PRAGMA journal_mode=WAL")
                with self.writing(durable=True):
                    prepare(self)
            self.inode = path.stat().st_ino
        except BaseException:
            self._file.close()
            raise

    def execute(self, statement: str, values: Sequence[object] = ()) -> Any:
        return self._file.execute(statement, values)

    def executemany(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        if rows:
            self._file.executemany(statement, rows)

    def begin(self, durable: bool) -> None:
        self.execute("BEGIN IMMEDIATE")

    def flush(self) -> None:
        # The log, or the file itself where another process has moved the log into it, and flushed that.
        with contextlib.suppress(FileNotFoundError), open(f"{self._path}-wal", "r+b", buffering=0) as written:
            getattr(os, "fdatasync", os.fsync)(written.fileno())

    def is_lost(self) -> bool:
        try:
            return os.stat(self._path).st_ino != self.inode
        except FileNotFoundError:
            return True

    def come(self, name: str) -> None:
        claims.come(self._presence(name))

    def is_gone(self, name: str) -> bool:
        return claims.is_gone(self._presence(name))

    def leave(self, name: str) -> None:
        claims.leave(self._presence(name))

    def _presence(self, name: str) -> Path:
        return self._path.with_name(f"{self._path.name}.processes") / name

    def close(self) -> None:
        self._file.close()


def is_held(error: Exception) -> bool:
    """True if another process kept the database or a lock of it beyond the waiting time."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or getattr(error, "sqlstate", "") == "55P03"


def is_damaged(error: Exception) -> bool:
    """True if SQLite cannot read a page of the file."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _code(error: Exception) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def row_digest(key: object, request: object, reply: object, cost_usd: object, budget: object) -> str:
    """SHA-256 (hex) over a row of `calls`."""
    return hashlib.sha256(json.dumps([key, request, reply, cost_usd, budget]).encode()).hexdigest()


def holds(row: Sequence[Any]) -> bool:
    """True if a row of `calls` (the columns of ROW) is unchanged since it was written."""
    return bool(row_digest(*row[:5]) == row[5])


def held(where: str | Path) -> HeldError:
    """The error of a ledger that another process holds."""
    return HeldError(
        f"ledger: another process holds {where}, for longer than it was waited for; nothing is lost, and the same "
        "command goes on when that process is done"
    )


def not_a_ledger(path: Path, error: Exception) -> DataError | HeldError:
    """The error for a file that cannot be opened."""
    return held(path) if is_held(error) else DataError(f"{path} cannot be opened as a call ledger: {error}")


def prepare(database: Database) -> None:
    """Makes missing tables, and raises sums that are less than their calls."""
    for statement in SCHEMA:
        database.execute(statement)
    database.execute("SELECT calls.added, budgets.model FROM calls, budgets LIMIT 0")  # fails on another version's
    for (budget,) in database.execute(_TOO_SMALL).fetchall():
        rows = database.execute(f"SELECT {ROW} FROM calls WHERE budget = ?", [budget]).fetchall()
        missing = math.fsum(row[3] for row in rows if holds(row)) - spent(database, budget)
        if missing > 0:
            database.execute(_RAISE, [budget, missing])


def spent(database: Database, budget: str) -> float:
    """US dollars of all calls under the budget's name."""
    query = "SELECT COALESCE(SUM(spent_usd), 0) FROM budgets WHERE budget = ?"
    return float(database.execute(query, [budget]).fetchone()[0])


@contextlib.contextmanager
def _prepared_alone(path: Path) -> Iterator[None]:
    """Holds the lock beside a ledger's file for making or salvaging it. Raises HeldError."""
    lock = FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=HELD_SECONDS)
    except Timeout:
        raise held(path) from None
    try:
        yield
    finally:
        lock.release()


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
    """Writes the readable, unchanged rows into a new ledger; returns the number of calls.

    Money that was spent stays spent when calls are lost.
    """
    new = sqlite3.connect(fresh, isolation_level=None)
    try:
        new.execute("PRAGMA synchronous=FULL")
        new.execute("BEGIN")
        for statement in SCHEMA:
            new.execute(statement)
        for (table,) in new.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = [row[1] for row in new.execute(f"PRAGMA table_info({table})")]
            insert = f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(columns))})"
            for rows in _readable(old, ", ".join(columns), table, size):
                new.executemany(insert, [row for row in rows if table != "calls" or holds(row)])
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
