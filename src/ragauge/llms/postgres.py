"""Connections to a PostgreSQL server with limits on silence and locks."""

from __future__ import annotations

import functools
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

CONNECT_SECONDS = 10  # for an address of the server to accept a connection and to begin a session
LOCK_SECONDS = 20  # that a lock of another process is waited for
SILENT_SECONDS = 25.0  # that an answer to one statement is waited for


def engine_at(url: URL) -> Engine:
    """An engine of the database at the URL.

    A statement without an answer, and a lock that another session keeps, are errors after the seconds above.
    """
    from sqlalchemy import create_engine, event

    engine = create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True)

    @event.listens_for(engine, "do_connect")
    def _connect(dialect: Any, record: Any, given: Any, named: dict[str, Any]) -> Any:
        connection = _class().connect(*given, **{"connect_timeout": CONNECT_SECONDS, **named})
        connection.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
        connection.commit()  # a setting goes with a transaction that is rolled back
        return connection

    return engine


def is_locked(error: Any) -> bool:
    """Whether a statement failed because another session kept a lock."""
    return getattr(error, "sqlstate", None) == "55P03"


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
