"""Claims on requests in flight, so that no two processes pay for the same reply.

A claim is a number below 2**60. The operating system or the database server ends the claims of a process that
dies.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from filelock import FileLock

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


class FileClaims:
    """One locked byte of a file per claim, or one locked file beside it if the system locks no bytes."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        about = os.fstat(self._file)
        self.real_file = about.st_dev, about.st_ino
        self.users = 0
        self._beside = path.with_name(f"{path.name}.claims")
        self._held: dict[int, FileLock | None] = {}
        self._lock = threading.Lock()

    def take(self, number: int) -> bool:
        """True if neither this process nor another holds the claim."""
        with self._lock:
            # A process is always granted the locks that it holds itself.
            if number in self._held:
                return False
            lock = None
            try:
                if fcntl is not None:
                    fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
                else:
                    self._beside.mkdir(exist_ok=True)
                    lock = FileLock(self._beside / f"{number:x}", blocking=False)
                    lock.acquire()
            except OSError:  # a Timeout of the lock, too
                return False
            self._held[number] = lock
            return True

    def drop(self, number: int) -> None:
        """Ends a claim."""
        with self._lock:
            lock = self._held.pop(number, None)
            if fcntl is not None:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)
            elif lock is not None:
                lock.release()
                with contextlib.suppress(OSError):  # another process claims it already
                    (self._beside / f"{number:x}").unlink()

    def close(self) -> None:
        """Ends all claims once all users of the file in the process have closed it."""
        with _opening:
            self.users -= 1
            if self.users == 0:
                _in_process.pop((os.getpid(), *self.real_file), None)
                os.close(self._file)
                for number in list(self._held) if fcntl is None else ():
                    self.drop(number)


_in_process: dict[tuple[int, int, int], FileClaims] = {}
_opening = threading.Lock()


def file_claims(path: Path) -> FileClaims:
    """The process's single FileClaims of the file, for any path to it.

    Record locks belong to the process and not to the open file. A second FileClaims would be granted the claims that
    the first holds, and closing either would end the locks of both.
    """
    with _opening:
        try:
            about = path.stat()  # before opening, since closing a second handle would end the locks
            known = _in_process.get((os.getpid(), about.st_dev, about.st_ino))
        except FileNotFoundError:
            known = None
        claims = known or FileClaims(path)
        claims.users += 1
        _in_process[os.getpid(), *claims.real_file] = claims
        return claims


class ServerClaims:
    """One advisory lock of the PostgreSQL session per claim."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._session: Connection | None = None
        self._held: set[int] = set()
        self._lock = threading.Lock()

    def take(self, number: int) -> bool:
        """True if neither this process nor another holds the claim."""
        from sqlalchemy import text

        with self._lock:
            # A session is always granted the locks that it holds itself.
            if number in self._held:
                return False
            if self._session is None or self._session.invalidated:
                self._session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            query = text("SELECT pg_try_advisory_lock(CAST(:number AS BIGINT))")
            if not self._session.execute(query, {"number": number}).scalar_one():
                return False
            self._held.add(number)
            return True

    def drop(self, number: int) -> None:
        """Ends a claim."""
        from sqlalchemy import exc, text

        with self._lock:
            self._held.discard(number)
            if self._session is not None:
                with contextlib.suppress(exc.DBAPIError):  # a lost session holds no locks
                    self._session.execute(
                        text("SELECT pg_advisory_unlock(CAST(:number AS BIGINT))"), {"number": number}
                    )

    def close(self) -> None:
        """Ends all claims."""
        if self._session is not None:
            self._session.close()
