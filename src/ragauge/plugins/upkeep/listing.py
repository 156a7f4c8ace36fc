"""Lists a store's folder: entries, cached vectors and pair scores, checkpoints, drafts."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragauge.contract.visible import time_text, visible
from ragauge.store import CHECKPOINTS, DRAFTS, KEY_FILE, damage_in_words, read_manifest
from ragauge.store.vectors import KINDS

SHOWN = 12  # characters of a digest
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LONG_DIGEST = re.compile(r"[0-9a-f]{32,}")
_NAMES = ("component", "index", "version")
_SHARED_MODELS = ("embedder", "tokenizer", "chat")
_MAX_VALUE, _MAX_WORDS = 32, 100  # characters of one parameter, and of all words on an entry


@dataclass(frozen=True)
class Item:
    """An entry, or a cache: the vectors or pair scores of a model, checkpoints of a training, a draft.

    `size` in bytes; `made` and `used` in seconds since 1970; `state` changes whenever it is used or written.
    `manifest` is the content of an entry's key.json, empty where that cannot be read; `unreadable` says why.
    """

    path: Path
    size: int
    made: float
    state: tuple[int, int]
    manifest: Mapping[str, Any] = field(default_factory=dict)
    unreadable: str = ""

    @property
    def stage(self) -> str:
        """The stage that made it; of a cache the folder that it is in."""
        return self.path.parent.name

    @property
    def digest(self) -> str:
        """Its digest, 64 characters; of a cache the name of its folder."""
        return self.path.name

    @property
    def name(self) -> str:
        """<stage>/<digest>, as runs record it."""
        return f"{self.stage}/{self.digest}"

    @property
    def used(self) -> float:
        """The time when it was last read or written."""
        return self.state[1] / 1e9

    @property
    def row(self) -> tuple[str, ...]:
        """Stage, digest, size, made, last used and maker, as cells of a table."""
        what = f"damaged: {visible(self.unreadable, one_line=True)}" if self.unreadable else describe(self.manifest)
        times = (time_text(self.made), time_text(self.used))
        return (self.stage, self.digest[:SHOWN], size_text(self.size), *times, _cut(what, _MAX_WORDS))


def list_items(root: Path) -> list[Item]:
    """The entries of a store, by stage and digest; omits those that vanish meanwhile."""
    paths = (path for path in sorted(root.glob("[!.]*/*")) if path.parent.name != CHECKPOINTS)
    return list(_listed(path for path in paths if _DIGEST.fullmatch(path.name)))


def list_caches(root: Path) -> list[Item]:
    """The vectors and pair scores of every model, checkpoints of trainings, and drafts."""
    return list(_listed(sorted(path for kind in (*KINDS, CHECKPOINTS, DRAFTS) for path in (root / kind).glob("*"))))


def _listed(paths: Iterator[Path] | list[Path]) -> Iterator[Item]:
    for path in paths:
        manifest, unreadable = {}, ""
        try:
            if _DIGEST.fullmatch(path.name) and path.parent.name != CHECKPOINTS:
                try:
                    manifest = read_manifest(path)
                except (OSError, ValueError) as error:
                    unreadable = damage_in_words(path, error)
            # A folder's own time stands still once its last file, key.json, is in it.
            yield Item(path, size_of(path), path.lstat().st_mtime, state_of(path), manifest, unreadable)
        except FileNotFoundError:
            continue


def state_of(path: Path) -> tuple[int, int]:
    """The inode of a folder, and in nanoseconds since 1970 the time of its key.json, else of the newest in it."""
    own = path.lstat()
    try:
        return own.st_ino, (path / KEY_FILE).lstat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return own.st_ino, max((found.st_mtime_ns for found in _within(path)), default=own.st_mtime_ns)


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder; a link counts with its own bytes."""
    return sum(found.st_size for found in _within(path) if not stat.S_ISDIR(found.st_mode))


def _within(path: Path) -> Iterator[os.stat_result]:
    """lstat of a path and, if it is a folder, of all in it, without following links."""
    yield path.lstat()
    for folder, folders, files in os.walk(path) if not path.is_symlink() else ():
        for name in (*folders, *files):
            with suppress(FileNotFoundError):  # what somebody else removes meanwhile
                yield os.lstat(os.path.join(folder, name))


def describe(manifest: Mapping[str, Any]) -> str:
    """The maker of an entry: its component with its own parameters, then shared models."""
    params = manifest.get("params", {})
    return ", ".join(_words(name, params[name]) for name in sorted(params, key=lambda n: n in _SHARED_MODELS))


def _words(name: str, value: Any) -> str:
    if not isinstance(value, Mapping):
        return f"{name}={_cut(' '.join(str(value).split()), _MAX_VALUE)}"
    own = ", ".join(
        _words(key, inner)
        for key, inner in value.items()
        if key not in _NAMES and inner is not None and not _LONG_DIGEST.fullmatch(str(inner))
    )
    component = str(value.get("component", value.get("index", name))).rpartition(".")[2]
    return f"{component}({own})" if own else component


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def size_text(size: int) -> str:
    """Bytes in decimal units, such as 1.2 MB."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 99.95 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"
