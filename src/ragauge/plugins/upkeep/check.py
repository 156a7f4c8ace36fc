"""Checks that an entry is intact: its key, its files, its frames."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa

from ragauge.contract import frames
from ragauge.contract.errors import DataError
from ragauge.plugins.upkeep.listing import Item
from ragauge.store import KEY_FILE, Key, damage_in, damage_in_words, frame_digest


def damage(item: Item) -> list[str]:
    """All damage of an entry; empty for an intact one, and for one removed meanwhile.

    It compares the digest of its key with its folder's name (unless a secret was kept out of key.json). It compares the
    SHA-256 of every file with the recorded one, and each frame's content digest. A frame with a schema is checked
    against that.
    """
    found = list(_damage(item))
    return found if os.path.lexists(item.path) else []


def _damage(item: Item) -> Iterator[str]:
    manifest = item.manifest
    if not manifest:
        yield item.unreadable
        return
    key = Key(manifest["stage"], manifest["version"], manifest["params"], manifest["inputs"])
    try:
        named = (key.stage, item.digest if manifest.get("redacted") is True else key.digest)
    except ValueError as error:
        yield f"{KEY_FILE} holds what no key can ({error})"
        return
    if named != (item.stage, item.digest):
        yield f"{KEY_FILE} is that of {key.stage}/{key.digest[:12]}"
    try:
        if found := damage_in(item.path, manifest):
            yield from found
            return
    except OSError as error:
        yield damage_in_words(item.path, error)
        return
    for name in manifest["files"]:
        if "/" not in name and name.endswith(".parquet"):
            frame = name.removesuffix(".parquet")
            yield from _frame_damage(item.path / name, frame, manifest["frames"][frame])


def _frame_damage(file: Path, name: str, digest: str | None) -> Iterator[str]:
    try:
        found = frame_digest(file)
        frame = pd.read_parquet(file) if name in frames.SCHEMAS else None
    except (OSError, ValueError, pa.ArrowException) as error:
        yield f"{file.name} cannot be read as Parquet: {error}"
        return
    if found != digest:
        yield f"{file.name} holds other rows than key.json records"
    if frame is not None:
        try:
            frames.check(name, frame)
        except DataError as error:
            yield f"{file.name}: {error}"
