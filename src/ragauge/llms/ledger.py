"""The call ledger: every finished LLM call on disk, found again by what was asked.

One table in SQLite (a file beside the store) or PostgreSQL (by URL). A row is committed before its reply is
used, so a killed process loses the calls that were in flight and no other. While a process waits for a reply
it holds a claim on the request, which the operating system or the database server drops with the process:
two processes that need the same reply at the same time pay for it once.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from ragauge.contract.errors import ConfigError, DataError

if sys.platform != "win32":  # on Windows claims hold within the process only
    import fcntl

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

log = logging.getLogger(__name__)

# SQLite's write-ahead log is shared memory, which machines do not share.
_NETWORK_FILE_SYSTEMS = re.compile(r"nfs|cifs|smb|ceph|lustre|gpfs|beegfs|gluster|sshfs|afs")
_KEYS_PER_QUERY = 500  # below every database's limit of bound values
_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS calls (
        key TEXT PRIMARY KEY,
        request TEXT NOT NULL,
        reply TEXT NOT NULL,
        cost_usd DOUBLE PRECISION NOT NULL,
        budget TEXT NOT NULL,
        created TIMESTAMP DEFAULT CURRENT_TIMESTAMP
    )""",
    "CREATE INDEX IF NOT EXISTS calls_budget ON calls (budget, cost_usd)",
)
_ADD = """INSERT INTO calls (key, request, reply, cost_usd, budget)
          VALUES (:key, :request, :reply, :cost_usd, :budget) ON CONFLICT (key) DO NOTHING"""


@dataclass(frozen=True)
class Call:
    """One finished call: what was asked (JSON, without keys) and what came back.

    `text` is None for a reply that was paid for and held no text: it counts as spent and answers nothing.
    `finish` is the server's reason for ending, `seconds` the time it took, `budget` the name under which its
    cost is summed.
    """

    key: str
    request: str
    text: str | None
    finish: str
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float
    seconds: float
    budget: str


class Ledger:
    """The finished calls at one place: a SQLite file, or a PostgreSQL database by URL.

    Several threads, processes and (PostgreSQL) machines may use one at a time. Raises ConfigError for a URL
    that cannot be used, DataError for a file that is no ledger.
    """

    def __init__(self, where: str | Path) -> None:
        self.where = str(where)
        self._held: set[str] = set()
        self._lock = threading.Lock()
        if "://" in self.where:
            self._claims: _FileClaims | _ServerClaims
            self._engine = _server_engine(self.where)
            self._claims = _ServerClaims(self._engine)
        else:
            self._engine = _file_engine(Path(self.where))
            self._claims = _FileClaims(Path(self.where + ".claims"))

    def find(self, keys: Sequence[str]) -> dict[str, Call]:
        """The finished calls among the keys."""
        from sqlalchemy import bindparam, text

        query = text("SELECT key, request, reply, cost_usd, budget FROM calls WHERE key IN :keys").bindparams(
            bindparam("keys", expanding=True)
        )
        found: dict[str, Call] = {}
        with self._engine.connect() as connection:
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                chunk = list(keys[start : start + _KEYS_PER_QUERY])
                for key, request, reply, cost, budget in connection.execute(query, {"keys": chunk}):
                    found[key] = Call(
                        key=key, request=request, cost_usd=cost, budget=budget, **json.loads(reply)
                    )
        return found

    def add(self, call: Call) -> None:
        """Commits the call; one that is there already stays as it is."""
        from sqlalchemy import text

        # JSON, because a reply may hold characters that a database's text type cannot (NUL, lone surrogates).
        reply = json.dumps(
            {
                "text": call.text,
                "finish": call.finish,
                "prompt_tokens": call.prompt_tokens,
                "completion_tokens": call.completion_tokens,
                "seconds": round(call.seconds, 4),
            }
        )
        row = {
            "key": call.key,
            "request": call.request.encode("utf-8", "replace").decode(),
            "reply": reply,
            "cost_usd": call.cost_usd,
            "budget": call.budget,
        }
        with self._engine.begin() as connection:
            connection.execute(text(_ADD), row)

    def spent(self, budget: str) -> float:
        """US dollars of all calls that were made under the budget's name, by any process."""
        from sqlalchemy import text

        query = text("SELECT COALESCE(SUM(cost_usd), 0) FROM calls WHERE budget = :budget")
        with self._engine.connect() as connection:
            return float(connection.execute(query, {"budget": budget}).scalar_one())

    def __len__(self) -> int:
        from sqlalchemy import text

        with self._engine.connect() as connection:
            return int(connection.execute(text("SELECT COUNT(*) FROM calls")).scalar_one())

    def claim(self, key: str) -> bool:
        """True if nobody else is asking this now; then the caller may, until `release`."""
        with self._lock:
            if key in self._held or not self._claims.take(_claim_number(key)):
                return False
            self._held.add(key)
            return True

    def release(self, key: str) -> None:
        """Ends a claim."""
        with self._lock:
            self._held.discard(key)
            self._claims.drop(_claim_number(key))

    def close(self) -> None:
        """Ends all connections and claims."""
        self._claims.close()
        self._engine.dispose()


def open_ledger(where: str | Path) -> Ledger:
    """The process's one Ledger at this place."""
    return _opened(str(where), os.getpid())


@functools.lru_cache(maxsize=8)
def _opened(where: str, pid: int) -> Ledger:
    # The process id: connections and claims do not survive a fork.
    return Ledger(where)


def _claim_number(key: str) -> int:
    return int(key[:15], 16)  # 60 bits: fits a file offset and an advisory lock


def _file_engine(path: Path) -> Engine:
    from sqlalchemy import create_engine, event, exc, text

    path.parent.mkdir(parents=True, exist_ok=True)
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

    try:
        # Two processes that turn on the write-ahead log at once would get "database is locked".
        with FileLock(f"{path}.lock"), engine.begin() as connection:
            connection.execute(text("PRAGMA journal_mode=WAL"))
            for statement in _SCHEMA:
                connection.execute(text(statement))
    except exc.DatabaseError as error:
        raise DataError(f"{path} cannot be opened as a call ledger: {error.orig}") from None
    return engine


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


def _server_engine(where: str) -> Engine:
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
            for statement in _SCHEMA:
                connection.execute(text(statement))
    except exc.OperationalError as error:
        raise ConfigError(f"ledger: {url.render_as_string()}: {error.orig}") from None
    return engine


class _FileClaims:
    """One locked byte of a file per claim; the operating system frees the locks of a dead process."""

    def __init__(self, path: Path) -> None:
        # Opened once per process: closing any handle of the file would drop all of its locks.
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def take(self, number: int) -> bool:
        if sys.platform == "win32":
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except OSError:
            return False
        return True

    def drop(self, number: int) -> None:
        if sys.platform != "win32":
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)

    def close(self) -> None:
        os.close(self._file)


class _ServerClaims:
    """One advisory lock of the database session per claim; the server frees those of a lost session."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._session: Connection | None = None

    def take(self, number: int) -> bool:
        from sqlalchemy import text

        if self._session is None or self._session.invalidated:
            self._session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        query = text("SELECT pg_try_advisory_lock(CAST(:number AS BIGINT))")
        return bool(self._session.execute(query, {"number": number}).scalar_one())

    def drop(self, number: int) -> None:
        from sqlalchemy import exc, text

        if self._session is not None:
            with contextlib.suppress(exc.DBAPIError):  # a lost session holds no locks
                self._session.execute(
                    text("SELECT pg_advisory_unlock(CAST(:number AS BIGINT))"), {"number": number}
                )

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
