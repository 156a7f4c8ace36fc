"""A damaged SQLite ledger replaced by a fresh file with every row that can still be read."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

from ragauge.llms.databases import ROW, SCHEMA, holds

log = logging.getLogger(__name__)

_ROWS_AT_ONCE = 4096
_SMALLEST_ROW = 64  # bytes: the digest alone has as many


def salvage(path: Path, damaged_file: int) -> None:
    """Replaces the ledger at `path`, and keeps the damaged file beside it under a name that says so.

    `damaged_file` is the inode that was found damaged: where another process has replaced it, nothing is
    done. Whoever writes to the old file waits until the fresh one is in its place, and must look then whether
    the path still leads to the file that was written (Ledger does). Raises sqlite3.Error or OSError where the
    file cannot be read at all.
    """
    with FileLock(f"{path}.lock"):
        if not path.exists() or path.stat().st_ino != damaged_file:
            return
        old = sqlite3.connect(path, timeout=60, isolation_level=None)
        old.text_factory = lambda data: data.decode("utf-8", "replace")
        fresh = path.with_name(f"{path.name}.fresh")
        fresh.unlink(missing_ok=True)
        try:
            old.execute("BEGIN IMMEDIATE")  # nobody writes to the damaged file from here on
            kept = _copy(old, fresh, path.stat().st_size)
            aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
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
    """Writes the rows that can be read and hold what was written into a new ledger; how many there are."""
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
        new.execute("COMMIT")
        new.execute("PRAGMA journal_mode=WAL")
        return int(new.execute("SELECT COUNT(*) FROM calls").fetchone()[0])
    finally:
        new.close()


def _readable(old: sqlite3.Connection, columns: str, table: str, size: int) -> Iterator[list[tuple]]:
    """Rows of a table without those on pages that cannot be read; a range that fails is halved."""
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
