"""Digests of the files that a component reads, by which a stage knows that they changed."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from ragauge.contract.protocols import (
    ReadsFiles,
)
from ragauge.store import file_sha256


def digests_of_files(component: Any) -> dict[str, str]:
    """The digest of every file that a component reads, by its role."""
    if not isinstance(component, ReadsFiles):
        return {}
    return {role: file_digest(path) for role, path in component.files().items()}


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes; read once per process while the file stays as it is."""
    stat = path.stat()
    return _file_digest(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=64)
def _file_digest(path: Path, size: int, mtime_ns: int) -> str:
    return file_sha256(path)
