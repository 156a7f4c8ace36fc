"""The folder of the job that this process works on: calls of models are kept with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_folder: str | None = None


@contextmanager
def working_on(folder: Path) -> Iterator[None]:
    """While it lasts, this process works on the job of the folder, or on what a sweep's folder holds."""
    global _folder
    before, _folder = _folder, str(folder.resolve())
    try:
        yield
    finally:
        _folder = before


def job_folder() -> str | None:
    """The folder of the job; None where no job runs."""
    return _folder
