"""The errors that a user can act on, each with its exit code."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from ragauge.contract.redact import redact, without_queries


class RagaugeError(Exception):
    """An error for the user: its message names the file, row or key, and the allowed values.

    Its text is free of secrets, including text of other libraries.
    """

    exit_code = 1

    def __str__(self) -> str:
        return without_queries(redact(super().__str__()))


class ConfigError(RagaugeError):
    """An unusable key, option or value of the configuration."""

    exit_code = 2


class DataError(RagaugeError):
    """A file, row or frame with invalid content."""

    exit_code = 2


class GateError(RagaugeError):
    """A configured quality gate was not met."""

    exit_code = 3


class MissingError(RagaugeError):
    """More answers or verdicts are missing than `max_missing_share` allows."""

    exit_code = 4


class UnreadableJudgeError(MissingError):
    """None of a judge's ten or more replies could be read, so other jobs need not ask it."""


class ServerGoneError(MissingError):
    """A server of chat models is not in service, so other jobs need not ask it; `address` is where it was asked."""

    def __init__(self, message: str, address: str = "") -> None:
        super().__init__(message)
        self.address = address


class WaitingError(RagaugeError):
    """Replies are pending in a provider's batch; the same command collects them later."""

    exit_code = 5


class HeldError(RagaugeError):
    """Another process holds the ledger; nothing is lost, and the same command continues once it is released."""

    exit_code = 4


class TrackingError(RagaugeError):
    """MLflow stopped answering while a run was open; computed outputs are in the store."""


class EngineError(RagaugeError):
    """The workers of an engine are unavailable or were lost too often; finished outputs are in the store."""


# What SQLite says, and errno 28 and 122 as safetensors tells them, by an error that is no OSError.
_FULL = ("database or disk is full", "(os error 28)", "(os error 122)")


def full_disk(error: BaseException, *places: str | os.PathLike[str]) -> str | None:
    """The message for an error caused by a full disk or quota; None for any other error.

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


# Errors of a file or folder that may not be written, or that is not what the path takes it for.
_REFUSED = frozenset(
    {
        errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG,
        errno.ELOOP, errno.ENOTCONN, errno.ESTALE,
    }
)  # fmt: skip
_DATABASE_REFUSED = ("unable to open database file", "attempt to write a readonly database")


def not_writable(
    error: BaseException, places: Mapping[str, str | os.PathLike[str]], database: Path | None = None
) -> str | None:
    """The message for an error caused by an unwritable place; None for any other error.

    places: folders by what chooses another one ("store=<folder> or RAGAUGE_STORE"). An error counts where
    its file is one of them, below one, or above one; that there is none counts where one of them cannot be
    made. database: MLflow's file, whose errors name none.
    """
    for link in causes(error):
        absent = isinstance(link, FileNotFoundError)
        if (file := _file_of(link) if absent else refused_file(link)) is not None:
            for chosen_by, place in places.items():
                folder = Path(place).absolute()
                above = file == folder or file in folder.parents
                if above or (folder in file.parents and not absent):
                    why = str(getattr(link, "strerror", link)).lower()
                    return f"{file}: cannot be written ({why}); {chosen_by} chooses another place"
        elif database is not None and (said := next((w for w in _DATABASE_REFUSED if w in str(link)), None)):
            chosen_by = "tracking.uri or MLFLOW_TRACKING_URI"
            return f"{database}: cannot be written ({said}); {chosen_by} chooses another place"
    return None


def refused_file(error: BaseException) -> Path | None:
    """The absolute path to which an error reports denied access; None for any other error."""
    if not isinstance(error, OSError) or error.errno not in _REFUSED:
        return None
    file = _file_of(error)
    return None if error.errno == errno.EEXIST and file is not None and file.is_dir() else file


def _file_of(error: BaseException) -> Path | None:
    named = getattr(error, "filename", None)
    return Path(named).absolute() if isinstance(named, str) else None


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and its chain of causes, with suppressed contexts."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def _free_bytes(place: str | os.PathLike[str]) -> float:
    """Free bytes of the file system that holds the path, or would hold it; inf where unknown."""
    path = Path(place).absolute()
    try:
        return float(shutil.disk_usage(next(p for p in (path, *path.parents) if p.exists())).free)
    except (OSError, StopIteration):
        return float("inf")
