"""Reads an entry's manifest (`key.json`) and checks its files against it.

A store may be shared: an entry is read only if it holds plain files of its own, each with the recorded SHA-256.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ragauge.contract.plain_files import NotPlain, open_plain, plain_files, read_json_object

KEY_FILE = "key.json"
_KINDS = {str: "a text", int: "a whole number", dict: "an object"}
_SHA256 = re.compile(r"[0-9a-f]{64}")


def read_manifest(entry: Path) -> dict[str, Any]:
    """The content of an entry's key.json.

    ValueError or OSError where it cannot be read, or lacks what a manifest must have.
    """
    if entry.is_symlink():
        raise NotPlain(0, "is a link, not a folder", str(entry))
    try:
        found = read_json_object(entry / KEY_FILE, links=False)
    except ValueError as error:
        raise ValueError(f"{KEY_FILE}: {error}") from None
    if wrong := next(_wrong_in(found), None):
        raise ValueError(f"{KEY_FILE}: {wrong}")
    return found


def _wrong_in(manifest: Mapping[str, Any]) -> Iterator[str]:
    for name, kind in (("stage", str), ("version", int), ("params", dict), ("inputs", dict), ("files", dict),
                       ("frames", dict)):  # fmt: skip
        if name not in manifest:
            yield f"{name} is missing"
        elif not isinstance(manifest[name], kind) or isinstance(manifest[name], bool):
            yield f"{name} must be {_KINDS[kind]}"
    for name in ("inputs", "files", "frames"):
        if not all(isinstance(value, str) for value in manifest[name].values()):
            yield f"{name} must have a digest for every name"
    if not all(map(_SHA256.fullmatch, manifest["files"].values())):
        yield "files must have a SHA-256 for every name"
    seconds = manifest.get("seconds", 0.0)
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < math.inf:
        yield "seconds must be a number of at least 0"
    if not isinstance(manifest.get("told", {}), dict):
        yield f"told must be {_KINDS[dict]}"


def damage_in(entry: Path, manifest: Mapping[str, Any]) -> list[str]:
    """The damage in the files of an entry, a line each; OSError if one cannot be read, or is not a plain file.

    Files are opened by the names that the folder has, never by those that the manifest gives. A hidden file that the
    manifest does not name, such as one of a file browser, is passed over.
    """
    files = dict(manifest["files"])
    found = {name for name, _ in plain_files(entry)} - {KEY_FILE}
    lost = [f"{name} is missing" for name in files if name not in found]
    unknown = sorted(name for name in found - set(files) if not name.rpartition("/")[2].startswith("."))
    added = [f"{name} has no checksum" for name in unknown]
    frames = [name for name in files if name.endswith(".parquet") and "/" not in name]
    added += [f"{name} has no digest" for name in frames if name.removesuffix(".parquet") not in manifest["frames"]]
    changed = [
        f"{name} is not the file that was written (its SHA-256 differs)"
        for name, sha in files.items()
        if name in found and file_sha256(entry / name, links=False) != sha
    ]
    return [*lost, *added, *changed]


def damage_in_words(entry: Path, error: OSError | ValueError) -> str:
    """A line of damage from an error in reading an entry, with the file's path in the entry."""
    if not isinstance(error, OSError) or error.filename is None:
        return str(error)
    file = Path(os.fsdecode(error.filename))
    name = file.relative_to(entry).as_posix() if file != entry and file.is_relative_to(entry) else "it"
    return f"{name} {error.strerror}" if isinstance(error, NotPlain) else f"{name}: {error.strerror}"


def touch(entry: Path) -> None:
    """Sets the time of the entry's key.json to now if permitted; leaves a link alone."""
    if not entry.is_symlink() and not (entry / KEY_FILE).is_symlink():
        with suppress(OSError, ValueError):
            os.utime(entry / KEY_FILE)


def file_sha256(file: Path, links: bool = True) -> str:
    """SHA-256 (hex) of a plain file's bytes; NotPlain for any other, and for a link unless `links` allows one."""
    with open_plain(file, links) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
