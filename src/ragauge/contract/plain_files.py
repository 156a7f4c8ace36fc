"""Reads untrusted folders: plain files alone, of bounded size and depth.

A pipe would block for ever, a device is endless, and a link leads out of the folder.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

_LONGEST = 64_000_000  # bytes of a JSON file that ragauge wrote about its own work
_DEEPEST = 100  # lists and mappings within each other
_FOLDERS_DEEPEST = 50  # folders within each other


class NotPlain(OSError):
    """A file that is a link, a pipe, a device or a folder where a plain file is expected."""

    def __str__(self) -> str:
        return f"{self.filename} {self.strerror}"


def open_plain(file: Path, links: bool = True) -> BufferedReader:
    """Opens a plain file to be read; NotPlain for anything else, and for a link unless `links` allows one."""
    try:
        # A pipe without a writer would be waited for here, were it not for O_NONBLOCK.
        at = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | (0 if links else getattr(os, "O_NOFOLLOW", 0)))
    except OSError as error:
        if links or not file.is_symlink():
            raise
        raise NotPlain(error.errno, "is a link, not a plain file", str(file)) from None
    if not stat.S_ISREG(mode := os.fstat(at).st_mode):
        os.close(at)
        raise NotPlain(0, f"is {_kind(mode)}, not a plain file", str(file))
    return os.fdopen(at, "rb")


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def read_json_object(file: Path, links: bool = True) -> dict[str, Any]:
    """The JSON object in a plain file; ValueError for wrong content, OSError if it cannot be read."""
    with open_plain(file, links) as stream:
        data = stream.read(_LONGEST + 1)
    if len(data) > _LONGEST:
        raise ValueError(f"it has more than {_LONGEST / 1e6:.0f} MB")
    try:
        found = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    except ValueError:  # Python turns no more than 4,300 digits into a number
        raise ValueError("a number in it has too many digits") from None
    except RecursionError:
        raise ValueError(f"it is nested deeper than {_DEEPEST} levels") from None
    if not isinstance(found, dict):
        raise ValueError(f"it must be a JSON object, not {_json_kind(found)}")
    level: list[Any] = [found]
    for _ in range(_DEEPEST):
        level = [item for value in level for item in _items(value)]
    if level:
        raise ValueError(f"it is nested deeper than {_DEEPEST} levels")
    return found


def _items(value: Any) -> Iterator[Any]:
    """The lists and mappings directly within a value."""
    inner = value.values() if isinstance(value, Mapping) else value
    return (item for item in inner if isinstance(item, (dict, list)))


def _json_kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def plain_files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The path within the folder (with /) and lstat of every plain file in it, at any depth.

    NotPlain where the folder or anything in it is a link, a pipe or a device, or where folders are nested 50 deep.
    """
    mode = folder.lstat().st_mode
    if not stat.S_ISDIR(mode):
        raise NotPlain(0, f"is {'a file' if stat.S_ISREG(mode) else _kind(mode)}, not a folder", str(folder))
    open_folders = [("", 0)]
    while open_folders:
        within, depth = open_folders.pop()
        with os.scandir(folder / within) as entries:
            for entry in entries:
                found = entry.stat(follow_symlinks=False)
                name = f"{within}{entry.name}"
                if stat.S_ISDIR(found.st_mode):
                    if depth == _FOLDERS_DEEPEST:
                        raise NotPlain(0, f"is nested deeper than {_FOLDERS_DEEPEST} folders", str(folder))
                    open_folders.append((f"{name}/", depth + 1))
                elif stat.S_ISREG(found.st_mode):
                    yield name, found
                else:
                    raise NotPlain(0, f"is {_kind(found.st_mode)}, not a plain file", str(folder / name))


def remove_all(path: Path) -> None:
    """Deletes a folder with its contents, a file, or a link without its target; OSError if it cannot."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    try:
        shutil.rmtree(path)
    except RecursionError:
        raise OSError(errno.ELOOP, "folders are nested too deep to be deleted", str(path)) from None
