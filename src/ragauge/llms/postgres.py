"""A call ledger's PostgreSQL server, with limits on silence and locks."""

from __future__ import annotations

import functools
import time
from collections.abc import Generator, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ragauge.contract.errors import ConfigError
from ragauge.contract.extras import require_extra
from ragauge.llms.databases import Database, held, is_held, prepare

CONNECT_SECONDS = 10  # for an address of the server to accept a connection and to begin a session
LOCK_SECONDS = 20  # that a lock of another process is waited for
SILENT_SECONDS = 25.0  # that an answer to one statement is waited for
_WRITES, _MAKES_TABLES = 7242, 7241  # advisory locks of a transaction


class PostgresServer(Database):
    """A session on the server at a URL. Raises ConfigError for a URL that cannot be used, HeldError.

    A statement without an answer, and a lock that another session keeps, are errors after the seconds above.
    """

    def __init__(self, where: str) -> None:
        self.where = _checked(where)
        require_extra("ledger=postgresql://...", "psycopg")
        import psycopg

        self.errors = (psycopg.Error,)
        self._names: set[str] = set()
        try:
            limit = {} if "connect_timeout" in self.where else {"connect_timeout": CONNECT_SECONDS}
            self._session = _class().connect(self.where, autocommit=True, **limit)
            self.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
            with self.writing(durable=True):
                # CREATE TABLE IF NOT EXISTS of two processes at once can fail in PostgreSQL.
                self.execute(f"SELECT pg_advisory_xact_lock({_MAKES_TABLES})")
                prepare(self)
        except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
            if is_held(error):
                raise held(self.where) from None
            raise ConfigError(f"ledger: {self.where}: {' '.join(str(error).split())}") from None

    def execute(self, statement: str, values: Sequence[object] = ()) -> Any:
        return self._session.execute(statement.replace("?", "%s"), values)

    def executemany(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        if rows:
            self._session.cursor().executemany(statement.replace("?", "%s"), rows)

    def begin(self, durable: bool) -> None:
        self.execute("BEGIN")
        if not durable:
            self.execute("SET LOCAL synchronous_commit = off")
        self.execute(f"SELECT pg_advisory_xact_lock({_WRITES})")

    def is_lost(self) -> bool:
        return bool(self._session.closed)

    def flush(self) -> None:
        pass  # COMMIT does

    def come(self, name: str) -> None:
        if name not in self._names:  # such locks are counted
            self.execute("SELECT pg_advisory_lock(CAST(? AS BIGINT))", [_number(name)])
            self._names.add(name)

    def is_gone(self, name: str) -> bool:
        if (
            name in self._names
            or not self.execute("SELECT pg_try_advisory_lock(CAST(? AS BIGINT))", [_number(name)]).fetchone()[0]
        ):
            return False
        self.leave(name)
        return True

    def leave(self, name: str) -> None:
        self._names.discard(name)
        self.execute("SELECT pg_advisory_unlock(CAST(? AS BIGINT))", [_number(name)])

    def close(self) -> None:
        self._session.close()


def _checked(where: str) -> str:
    """The URL, as psycopg reads it; ConfigError if it is none of PostgreSQL, or holds a password."""
    try:
        url = urlsplit(where)
        password, scheme = url.password, url.scheme.partition("+")[0]
        if not scheme:
            raise ValueError
    except ValueError:
        raise ConfigError("ledger: not a database URL; allowed: a file path or postgresql://...") from None
    if password is not None or any("pass" in name for name, _ in parse_qsl(url.query, keep_blank_values=True)):
        raise ConfigError("ledger: no password in the URL; PGPASSWORD or ~/.pgpass hold it")
    if scheme != "postgresql":
        raise ConfigError(f"ledger: {scheme}:// is not allowed; a file path or postgresql://... is")
    return f"postgresql{where[where.index('://') :]}"


def _number(name: str) -> int:
    return int(name[:15], 16)  # 60 bits: fits an advisory lock


@functools.cache
def _class() -> Any:
    """psycopg's connection class with a time limit for a statement's answer."""
    import psycopg

    class Answering(psycopg.Connection[Any]):
        def wait(self, gen: Any, *given: Any, **named: Any) -> Any:
            return super().wait(self._limited(gen), *given, **named)

        def _limited(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            """`gen`, which psycopg resumes at least every tenth of a second, until its time is over."""
            until = time.monotonic() + SILENT_SECONDS
            try:
                state = next(gen)
                while True:
                    state = gen.send((yield state))
                    if time.monotonic() > until:
                        break
            except StopIteration as end:
                return end.value
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the server gave no answer within {SILENT_SECONDS:g} s")

    return Answering
