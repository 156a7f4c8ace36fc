"""The errors that a user can act on, each with the exit code it ends a command with."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ragauge.contract.redact import redact


class RagaugeError(Exception):
    """An error whose message is for the user: it names the file, row or key and what is allowed.

    Its text is free of secrets, whatever text of another library went into it.
    """

    exit_code = 1

    def __str__(self) -> str:
        return redact(super().__str__())


class ConfigError(RagaugeError):
    """A key, option or value of the configuration that cannot be used."""

    exit_code = 2


class DataError(RagaugeError):
    """A file, row or frame that does not hold what it must."""

    exit_code = 2


class GateError(RagaugeError):
    """A quality gate that was asked for and not met."""

    exit_code = 3


class MissingError(RagaugeError):
    """More answers or verdicts are missing than `max_missing_share` allows."""

    exit_code = 4


class TrackingError(RagaugeError):
    """MLflow stopped answering while a run was open; what was computed is in the store."""


class EngineError(RagaugeError):
    """The workers of an engine cannot be had, or were lost too often; what was finished is in the store."""


# What SQLite says, and errno 28 and 122 as safetensors tells them, by an error that is no OSError.
_FULL = ("database or disk is full", "(os error 28)", "(os error 122)")


def full_disk(error: BaseException, *places: str | os.PathLike[str]) -> str | None:
    """What to tell of an error that came from a full disk or quota; None for any other error.

    Names the file that could not be written where the error does, else the fullest of the places.
    """
    for link in causes(error):
        no_space = isinstance(link, OSError) and link.errno in (errno.ENOSPC, errno.EDQUOT)
        if no_space or any(words in str(link) for words in _FULL):
            file = getattr(link, "filename", None) or min(places, key=_free_bytes, default=None)
            return (
                f"no space is left on the disk{f' of {file}' if file else ''}; what is finished is kept, and "
                "the same command goes on when there is room"
            )
    return None


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from, the suppressed contexts included."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def _free_bytes(place: str | os.PathLike[str]) -> float:
    """Free bytes of the file system that holds the path, or would hold it; inf where nobody can tell."""
    path = Path(place).absolute()
    try:
        return float(shutil.disk_usage(next(p for p in (path, *path.parents) if p.exists())).free)
    except (OSError, StopIteration):
        return float("inf")
