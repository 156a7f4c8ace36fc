"""One entry in detail: found by the beginning of its digest, with its inputs and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ragauge.contract.errors import ConfigError
from ragauge.contract.plain_files import plain_files
from ragauge.contract.visible import time_text
from ragauge.plugins.upkeep.listing import Item, prefix_length, size_text
from ragauge.store import damage_in_words


def find(root: Path, items: Sequence[Item], target: str) -> Item:
    """The entry whose digest begins with `target`, or with the part after <stage>/.

    ConfigError where none does, or several do.
    """
    stage, _, prefix = target.rpartition("/")
    found = [i for i in items if i.digest.startswith(prefix) and stage in ("", i.stage)] if prefix else []
    if not found:
        raise ConfigError(f"no entry's digest begins with {target!r}; {holds(root, items)}")
    if len(found) > 1:
        length = max(prefix_length(found), len(prefix) + 1)
        names = ", ".join(f"{i.stage}/{i.digest[:length]}" for i in found[:10])
        raise ConfigError(f"{len(found)} entries' digests begin with {target!r}: {names}")
    return found[0]


def holds(root: Path, items: Sequence[Item]) -> str:
    """The number of entries of a store, by stage, in words."""
    stages = ", ".join(sorted({item.stage for item in items}))
    return f"the store {root} holds {len(items)} entries" + (f" of the stages {stages}" if stages else "")


def detail_lines(item: Item, items: Sequence[Item]) -> list[str]:
    """Times, parameters, inputs and files of an entry, a line each; `items` are all entries of the store."""
    manifest = item.manifest
    took = f", in {manifest['seconds']:.2f} s" if "seconds" in manifest else ""
    return [
        item.name,
        f"  size       {size_text(item.size)}",
        f"  made       {time_text(item.made)}{took}",
        f"  last used  {time_text(item.used)}",
        f"  version    {manifest.get('version', 'key.json cannot be read')}",
        "params",
        *(f"  {line}" for line in _params(manifest)),
        "made from",
        *(f"  {line}" for line in _inputs(manifest.get("inputs", {}), items)),
        "files",
        *(f"  {line}" for line in _files(item)),
    ]


def _params(manifest: Mapping[str, Any]) -> list[str]:
    return yaml.safe_dump(manifest.get("params", {}), sort_keys=False, allow_unicode=True).splitlines()


def _inputs(inputs: Mapping[str, str], items: Sequence[Item]) -> Iterator[str]:
    """A line per input: its name, its digest, and the entries with this digest or with such a frame."""
    length = prefix_length(items)
    for name, digest in inputs.items():
        holders = [
            other for other in items
            if other.digest == digest or digest in other.manifest.get("frames", {}).values()
        ]  # fmt: skip
        found = ", ".join(f"{other.stage}/{other.digest[:length]}" for other in holders)
        yield f"{name}: {digest[:length]}  " + (found or "a file, part of a frame, or no longer in this store")


def _files(item: Item) -> Iterator[str]:
    """A line per file: its name, its size, and a frame's rows and columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        files = sorted(plain_files(item.path))
    except OSError as error:
        yield damage_in_words(item.path, error)
        return
    for name, found in files:
        line = f"{name}  {size_text(found.st_size)}"
        if name.endswith(".parquet"):
            try:
                meta = pq.read_metadata(item.path / name)
                line += f"  {meta.num_rows:,} row(s): {', '.join(meta.schema.to_arrow_schema().names)}"
            except (OSError, pa.ArrowException) as error:
                line += f"  cannot be read: {error}"
        yield line
