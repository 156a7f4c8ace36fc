"""Files that say which processes live, so that the claims of a dead one are dropped.

A process holds its file locked; the operating system ends the lock with the process.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import ModuleType

from filelock import FileLock

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

# Files of this process. It is granted every lock that it holds itself, and a fork inherits none.
_mine: dict[tuple[int, str], int | FileLock] = {}


def come(file: Path) -> None:
    """Makes and locks the file until `leave`; removes files beside it of processes that are gone."""
    if (os.getpid(), str(file)) in _mine:
        return
    file.parent.mkdir(exist_ok=True)
    lock = _locked(file)
    assert lock is not None
    _mine[os.getpid(), str(file)] = lock
    for other in list(file.parent.iterdir()):
        is_gone(other)


def is_gone(file: Path) -> bool:
    """True if no process holds the file, which is then removed."""
    if (os.getpid(), str(file)) in _mine:
        return False
    if not file.exists():
        return True
    lock = _locked(file)
    if lock is not None:
        _remove(file, lock)
    return lock is not None


def leave(file: Path) -> None:
    """Removes this process's file."""
    lock = _mine.pop((os.getpid(), str(file)), None)
    if lock is not None:
        _remove(file, lock)


def _locked(file: Path) -> int | FileLock | None:
    """The lock on the file; None where another process holds it."""
    if fcntl is None:
        lock = FileLock(file, blocking=False)
        with contextlib.suppress(OSError):  # a Timeout of the lock, too
            lock.acquire()
            return lock
        return None
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _remove(file: Path, lock: int | FileLock) -> None:
    if isinstance(lock, FileLock):
        lock.release()  # Windows removes no open file
    with contextlib.suppress(OSError):
        file.unlink()
    if isinstance(lock, int):
        os.close(lock)
