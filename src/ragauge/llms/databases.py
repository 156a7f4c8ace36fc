"""The databases that hold a call ledger: their tables, and how a SQLite file or a server is opened."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from ragauge.contract.errors import ConfigError, DataError
from ragauge.llms import reservations

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.exc import DBAPIError

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
    *reservations.SCHEMA,
)
_CACHE_KIB = 65_536
ROW = "key, request, reply, cost_usd, budget, digest"
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
    """True if a row of `calls` (the columns of ROW) is what was written."""
    return bool(row_digest(*row[:5]) == row[5])


def is_damaged(error: DBAPIError) -> bool:
    """True if SQLite cannot read a page of the file."""
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def file_engine(path: Path) -> Engine:
    """The SQLite ledger at a path, made or upgraded where needed. Raises SQLAlchemy's DatabaseError."""
    from sqlalchemy import create_engine, event

    kind = _file_system(path.parent)
    if _NETWORK_FILE_SYSTEMS.search(kind):
        log.warning(
            "ledger: %s is on %s, where two machines at once would damage it; a team's ledger is PostgreSQL: "
            "RAGAUGE_LEDGER=postgresql://... (docs/team.md)",
            path,
            kind,
        )
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 60})

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, _: Any) -> None:
        # A commit is on the disk when it returns (3 ms): it survives a kill and a power cut.
        connection.execute("PRAGMA synchronous=FULL")
        # Keys are random: with 2 MB, the default, each call of a large ledger reads pages of the index anew.
        connection.execute(f"PRAGMA cache_size={-_CACHE_KIB}")
        # A flipped bit that leaves no UTF-8 is found by the row's digest.
        connection.text_factory = lambda data: data.decode("utf-8", "replace")

    # Two processes that turn on the write-ahead log at once would get "database is locked".
    with FileLock(f"{path}.lock"):
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        with engine.begin() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            _prepare(connection)
    return engine


def server_engine(where: str) -> Engine:
    """The PostgreSQL ledger at a URL. Raises ConfigError for a URL that cannot be used."""
    from sqlalchemy import create_engine, exc, text
    from sqlalchemy.engine import make_url

    try:
        url = make_url(where)
    except (exc.ArgumentError, ValueError):
        raise ConfigError("ledger: not a database URL; allowed: a file path or postgresql://...") from None
    if url.password is not None or any("pass" in name for name in url.query):
        raise ConfigError("ledger: no password in the URL; PGPASSWORD or ~/.pgpass hold it")
    if url.get_backend_name() != "postgresql":
        raise ConfigError(f"ledger: {url.drivername}:// is not allowed; a file path or postgresql://... is")
    try:
        engine = create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    except ImportError:
        raise ConfigError("ledger: PostgreSQL needs the driver: pip install 'psycopg[binary]'") from None
    try:
        with engine.begin() as connection:
            # CREATE TABLE IF NOT EXISTS of two processes at once can fail in PostgreSQL.
            connection.execute(text("SELECT pg_advisory_xact_lock(7241)"))
            _prepare(connection)
    except exc.OperationalError as error:
        raise ConfigError(f"ledger: {url.render_as_string()}: {error.orig}") from None
    return engine


def _prepare(connection: Connection) -> None:
    """Makes what tables are missing, and checks the sums."""
    from sqlalchemy import text

    for statement in SCHEMA:
        connection.execute(text(statement))
    for (budget,) in connection.execute(text(_TOO_SMALL)).all():
        rows = connection.execute(text(f"SELECT {ROW} FROM calls WHERE budget = :b"), {"b": budget}).all()
        spent = math.fsum(row[3] for row in rows if holds(row))
        connection.execute(text(_RAISE), {"budget": budget, "spent": spent})


def not_a_ledger(path: Path, error: DBAPIError) -> DataError:
    """The error of a file that cannot be opened."""
    return DataError(f"{path} cannot be opened as a call ledger: {error.orig}")


def _file_system(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The type of the file system that holds the folder, such as ext4; "" where the system does not tell."""
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
