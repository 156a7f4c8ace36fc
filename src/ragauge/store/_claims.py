"""Keys that a living process is at work on, so that no other begins the same.

A claim is a file of keys, and a lock beside it that its process holds: the operating system lets go of the
lock when the process ends, however it ends, and the claim with it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout


class Claim:
    """The keys of one piece of work, claimed until the `with` block ends."""

    def __init__(self, file: Path, lock: FileLock) -> None:
        self._file, self._lock = file, lock

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *error: object) -> None:
        _remove(self._file, self._lock)


class Claims:
    """The claims in a folder; its methods are called under one lock of the caller's.

    folder: holds two files for each claim. Processes, and machines where the file system carries locks, see
    each other's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def take(self, keys: np.ndarray) -> Claim:
        """Claims the keys (an array of fixed-width bytes), of which nobody else holds any."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{uuid.uuid4().hex}.keys"
        lock = FileLock(file.with_suffix(".lock"))
        lock.acquire()
        file.write_bytes(np.ascontiguousarray(keys).tobytes())
        return Claim(file, lock)

    def held(self, keys: np.ndarray) -> np.ndarray:
        """bool [len(keys)]: whether a living process has claimed the key."""
        found = np.zeros(len(keys), dtype=bool)
        for file in self.living():
            with suppress(FileNotFoundError):  # done meanwhile
                found |= np.isin(keys, np.frombuffer(file.read_bytes(), dtype=keys.dtype))
        return found

    def living(self) -> Iterator[Path]:
        """The files of keys that living processes claim; those of processes that ended are removed."""
        for file in self.folder.glob("*.keys"):
            lock = FileLock(file.with_suffix(".lock"), timeout=0)
            try:
                lock.acquire()
            except Timeout:
                yield file
            else:
                _remove(file, lock)


def _remove(file: Path, lock: FileLock) -> None:
    file.unlink(missing_ok=True)
    file.with_suffix(".lock").unlink(missing_ok=True)
    lock.release()
