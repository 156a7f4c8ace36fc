"""Whether an entry is what its maker wrote: its key, its files, its frames."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ragauge.contract import frames
from ragauge.contract.errors import DataError
from ragauge.plugins.upkeep.listing import Item
from ragauge.store import Key, file_sha256, frame_digest


def damage(item: Item) -> list[str]:
    """Everything that is wrong with an entry; empty for a whole one, and for one that is gone by now.

    It compares the digest of its key with its folder's name (unless a secret was kept out of key.json). It compares the
    SHA-256 of every file with the recorded one, and each frame's content digest. A frame with a schema is checked
    against that.
    """
    found = list(_damage(item))
    return found if item.path.exists() else []


def _damage(item: Item) -> Iterator[str]:
    try:
        manifest: Any = item.manifest
        key = Key(manifest["stage"], manifest["version"], manifest["params"], manifest["inputs"])
        files, digests = dict(manifest["files"]), dict(manifest["frames"])
        named = (key.stage, item.digest if manifest.get("redacted") is True else key.digest)
    except (KeyError, TypeError, ValueError) as error:
        yield f"key.json cannot be read ({error})" if item.manifest else "key.json cannot be read"
        return
    if named != (item.stage, item.digest):
        yield f"key.json is that of {key.stage}/{key.digest[:12]}"
    for name, sha in files.items():
        try:
            if file_sha256(item.path / name) != sha:
                yield f"{name} is not the file that was written (its SHA-256 differs)"
                continue
        except OSError as error:
            yield f"{name}: {error.strerror}"
            continue
        if "/" not in name and name.endswith(".parquet"):
            frame = name.removesuffix(".parquet")
            yield from _frame_damage(item.path / name, frame, digests.get(frame))


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
