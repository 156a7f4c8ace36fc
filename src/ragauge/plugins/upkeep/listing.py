"""The content of a store's folder: entries with sizes and times, vectors and pair scores."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragauge.contract.visible import time_text, visible
from ragauge.store import CHECKPOINTS, KEY_FILE, damage_in_words, read_manifest
from ragauge.store.vectors import KINDS, vectors_name

MIN_PREFIX = 12  # characters of a digest that are shown at least
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LONG_DIGEST = re.compile(r"[0-9a-f]{32,}")
_NAMES = ("component", "index", "version")
_SHARED_MODELS = ("embedder", "tokenizer", "chat")
_MAX_VALUE, _MAX_WORDS = 32, 100  # characters of one parameter, and of all words on an entry


@dataclass(frozen=True)
class Item:
    """An entry on disk, whole or not.

    `size` in bytes; `made` and `used` in seconds since 1970; `state` changes whenever the entry is used or
    made again. `manifest` is the content of key.json, empty where that cannot be read; `unreadable` says why.
    """

    path: Path
    size: int
    made: float
    state: tuple[int, int]
    manifest: Mapping[str, Any]
    unreadable: str = ""

    @property
    def stage(self) -> str:
        """The stage that made it."""
        return self.path.parent.name

    @property
    def digest(self) -> str:
        """Its digest, 64 characters."""
        return self.path.name

    @property
    def name(self) -> str:
        """<stage>/<digest>, as runs record it."""
        return f"{self.stage}/{self.digest}"

    @property
    def used(self) -> float:
        """The time when it was last read or made."""
        return self.state[1] / 1e9

    @property
    def what(self) -> str:
        """Its maker, in a few words."""
        if not self.manifest:
            return f"damaged: {_cut(visible(self.unreadable, one_line=True), _MAX_WORDS)}"
        return describe(self.manifest.get("params", {}))


@dataclass(frozen=True)
class Vectors:
    """The cached vectors, or pair scores, of one model: folder, bytes, segments, and the newest segment's time."""

    path: Path
    size: int
    segments: tuple[Path, ...]
    written: float

    @property
    def name(self) -> str:
        """vectors/<the beginning of the model's digest>, or pair_scores/<the same>."""
        return f"{self.path.parent.name}/{self.path.name}"


def list_items(root: Path) -> list[Item]:
    """The entries of a store, by stage and digest; omits those that vanish meanwhile."""
    found = []
    for path in sorted(root.glob("[!.]*/*")):
        if path.parent.name == CHECKPOINTS:
            continue
        if _DIGEST.fullmatch(path.name):
            try:
                found.append(_item(path))
            except FileNotFoundError:
                continue
    return found


def list_vectors(root: Path) -> list[Vectors]:
    """The vectors of every embedding model, and the pair scores of every cross-encoder."""
    found = []
    for path in (path for kind in KINDS for path in sorted((root / kind).glob("*")) if path.is_dir()):
        segments = tuple(sorted(path.glob("segment-*")))
        # The folder's own time moves whenever a segment comes or goes.
        found.append(Vectors(path, folder_size(path), segments, path.stat().st_mtime))
    return found


def state_of(path: Path) -> tuple[int, int]:
    """The inode of an entry's folder, and its last use in nanoseconds since 1970."""
    stat = path.lstat()
    try:
        return stat.st_ino, (path / KEY_FILE).lstat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return stat.st_ino, stat.st_mtime_ns


def folder_size(path: Path) -> int:
    """Bytes of all files in a folder; a link counts with its own bytes."""
    size = 0
    for folder, _, files in os.walk(path):
        for name in files:
            with suppress(FileNotFoundError):  # a file that somebody else removes meanwhile
                size += os.lstat(os.path.join(folder, name)).st_size
    return size


def _item(path: Path) -> Item:
    unreadable = ""
    try:
        manifest = read_manifest(path)
    except (OSError, ValueError) as error:
        manifest, unreadable = {}, damage_in_words(path, error)
    # A folder's own time stands still once its last file, key.json, is in it.
    size = 0 if path.is_symlink() else folder_size(path)
    return Item(path, size, path.lstat().st_mtime, state_of(path), manifest, unreadable)


def models_of(items: Iterable[Item]) -> dict[str, str]:
    """The models that made the entries, by the name of the folder of vectors or pair scores.

    An embedder is known by all of its identity, other models by what their component calls `scorer`, wherever it is.
    """
    models: dict[str, str] = {}

    def find(value: Any, key: str = "") -> None:
        if not isinstance(value, Mapping):
            return
        own = value if key == "embedder" else value.get("scorer")
        if isinstance(own, Mapping):
            models[vectors_name(own)] = str(value.get("model", value.get("component", "?")))
        for name, inner in value.items():
            find(inner, name)

    for item in items:
        find(item.manifest.get("params"))
    return models


def model_of(vectors: Vectors, models: Mapping[str, str]) -> str | None:
    """The model whose vectors or pair scores a folder holds; None if it made no entry."""
    return models.get(vectors.path.name.partition("-")[0])


def describe(params: Mapping[str, Any]) -> str:
    """The maker of an entry in a few words: its component with its own parameters, then shared models."""
    shared = [name for name in _SHARED_MODELS if name in params]
    own = [name for name in params if name not in shared]
    words = ", ".join(_words(name, params[name]) for name in (*own, *shared))
    return _cut(words, _MAX_WORDS)


def _words(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        plain = {
            k: v
            for k, v in value.items()
            if k not in ("component", "index", "version") and v is not None and not _LONG_DIGEST.fullmatch(str(v))
        }
        cls = str(value.get("component", value.get("index", name))).rpartition(".")[2]
        return f"{cls}({', '.join(_words(k, v) for k, v in plain.items())})" if plain else cls
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 2:
        return f"{name}={value[0]}..{value[-1]} ({len(value)})"
    return f"{name}={_cut(' '.join(str(value).split()), _MAX_VALUE)}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def prefix_length(items: Sequence[Item]) -> int:
    """The number of characters that distinguishes all digests of a store."""
    digests = {item.digest for item in items}
    length = MIN_PREFIX
    while len({digest[:length] for digest in digests}) < len(digests):
        length += 1
    return length


def size_text(size: int) -> str:
    """Bytes in decimal units, such as 1.2 MB."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 99.95 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"


def words_on(vectors: Vectors, models: Mapping[str, str]) -> str:
    """Size and model of cached vectors or pair scores; `models` made the entries."""
    return f"{size_text(vectors.size)}, of {model_of(vectors, models) or 'a model that made no entry'}"


def row(item: Item, length: int) -> tuple[str, ...]:
    """An entry as a table row: stage, digest, size, made, last used, maker."""
    times = (time_text(item.made), time_text(item.used))
    return (item.stage, item.digest[:length], size_text(item.size), *times, item.what)
