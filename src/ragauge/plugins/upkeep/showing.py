"""Prints the content of a store, one of its entries, and its damage."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from ragauge import track
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.plain_files import plain_files
from ragauge.contract.progress import progress
from ragauge.contract.redact import redact
from ragauge.contract.visible import table, time_text, visible
from ragauge.plugins.upkeep import check, removal
from ragauge.plugins.upkeep.listing import SHOWN, Item, list_caches, list_items, size_of, size_text
from ragauge.store import CHECKPOINTS, damage_in_words
from ragauge.store.vectors import KINDS, segment_damage

_LEDGER = "ledger.db"


def ls(root: Path, stage: str | None, sort: str | None) -> int:
    """Prints a table of the entries, sums by stage, and the sizes of vectors and other files."""
    items = list_items(root)
    stages = {item.stage: [other for other in items if other.stage == item.stage] for item in items}
    if stage is not None:
        if stage not in stages:
            raise ConfigError(f"--stage {stage}: {_holds(root, items)}")
        items, stages = stages[stage], {stage: stages[stage]}
    if sort is not None:
        items.sort(key=lambda item: -item.size if sort == "size" else item.used)
    head = ("stage", "digest", "size", "made", "last used", "what made it")
    print(table([head, *(item.row for item in items)], right=(2,)))
    sums = [(name, f"{len(of)}", size_text(sum(i.size for i in of))) for name, of in stages.items()]
    total = ("total", f"{len(items)}", size_text(sum(item.size for item in items)))
    print("\n" + table([("stage", "entries", "size"), *sums, total], right=(1, 2)))
    if stage is None:
        for cache in list_caches(root):
            print(f"{cache.name}: {size_text(cache.size)}, last used {time_text(cache.used)}")
        for path in sorted(root.glob("[!.]*")):
            if path.name not in (*stages, *KINDS, CHECKPOINTS):
                words = ", the LLM calls that were paid for; see ragauge ledger" if path.name == _LEDGER else ""
                print(f"{path.name}: {size_text(size_of(path))}{words}")
    return 0


def _holds(root: Path, items: Sequence[Item]) -> str:
    stages = ", ".join(sorted({item.stage for item in items}))
    return f"the store {root} holds {len(items)} entries" + (f" of the stages {stages}" if stages else "")


def show(root: Path, target: str, uris: Sequence[str]) -> int:
    """Prints all details of the entry whose digest begins with `target`, or with the part after <stage>/.

    They include the runs that used it. ConfigError where no entry fits, or several do.
    """
    items = list_items(root)
    stage, _, prefix = target.rpartition("/")
    found = [i for i in items if i.digest.startswith(prefix) and stage in ("", i.stage)] if prefix else []
    if not found:
        raise ConfigError(f"no entry's digest begins with {target!r}; {_holds(root, items)}")
    if len(found) > 1:
        names = ", ".join(item.name for item in found[:10])
        raise ConfigError(f"{len(found)} entries' digests begin with {target!r}: {names}")
    print("\n".join(visible(line) for line in _details(found[0], items)))
    for uri in uris:
        try:
            runs = track.Reader(uri).measured(found[0].name)
        except ConfigError as error:
            print(f"used by runs: not known ({visible(error)})")
            continue
        print(f"used by {len(runs)} run(s) in MLflow at {redact(uri)}")
        for run in runs:
            sweep = f"sweep {run.tags['sweep_id']}" if "sweep_id" in run.tags else "no sweep"
            print(f"  {run.run_id}  {time_text(run.started)}  {visible(run.name, one_line=True)}  ({sweep})")
    return 0


def _details(item: Item, items: Sequence[Item]) -> Iterator[str]:
    """A line each: times, parameters, the entries with the digests or frames that it was made from, files."""
    manifest = item.manifest
    took = f", in {manifest['seconds']:.2f} s" if "seconds" in manifest else ""
    yield item.name
    yield f"  size       {size_text(item.size)}"
    yield f"  made       {time_text(item.made)}{took}"
    yield f"  last used  {time_text(item.used)}"
    yield f"  version    {manifest.get('version', 'key.json cannot be read')}"
    yield "params"
    params = yaml.safe_dump(manifest.get("params", {}), sort_keys=False, allow_unicode=True)
    yield from (f"  {line}" for line in params.splitlines())
    yield "made from"
    for name, digest in manifest.get("inputs", {}).items():
        holders = ", ".join(
            f"{other.stage}/{other.digest[:SHOWN]}"
            for other in items
            if digest in (other.digest, *other.manifest.get("frames", {}).values())
        )
        yield f"  {name}: {digest[:SHOWN]}  {holders or 'a file, part of a frame, or no longer in this store'}"
    yield "files"
    try:
        yield from (f"  {name}  {size_text(of.st_size)}{_frame(item.path / name)}" for name, of in
                    sorted(plain_files(item.path)))  # fmt: skip
    except OSError as error:
        yield f"  {damage_in_words(item.path, error)}"


def _frame(file: Path) -> str:
    """Rows and columns of a Parquet file; "" for any other."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file.suffix != ".parquet":
        return ""
    try:
        meta = pq.read_metadata(file)
    except (OSError, pa.ArrowException) as error:
        return f"  cannot be read: {error}"
    return f"  {meta.num_rows:,} row(s): {', '.join(meta.schema.to_arrow_schema().names)}"


def verify(root: Path, delete: bool) -> int:
    """Rereads every entry and prints the damaged ones with the reasons; returns 2 if there are any."""
    items = list_items(root)
    segments = [path for kind in KINDS for path in sorted((root / kind).glob("*/segment-*"))]
    damaged, removed = 0, 0
    with progress(len(items) + len(segments), "reading again", "entry") as bar:
        for item in items:
            reasons = check.damage(item)
            bar.update()
            if reasons:
                damaged += 1
                removed += delete and removal.remove(root, item)
                bar.write(f"damaged: {item.stage}/{item.digest[:SHOWN]}: {visible('; '.join(reasons), one_line=True)}")
        for segment in segments:
            reason = segment_damage(segment)
            bar.update()
            if reason is not None and os.path.lexists(segment):
                damaged += 1
                removed += delete and removal.remove_segment(root, segment)
                bar.write(f"damaged: {segment.relative_to(root).as_posix()}: {reason}")
    print(f"{len(items)} entries and {len(segments)} segments of vectors read, {damaged} damaged")
    if delete and damaged:
        print(f"{removed} removed; a run that needs them makes them again")
    elif damaged:
        print("--delete removes them; a run that needs them makes them again")
    return DataError.exit_code if damaged else 0
