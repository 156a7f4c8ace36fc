"""Prints the content of a store, one of its entries, and its damage."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ragauge import track
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.progress import progress
from ragauge.contract.redact import redact
from ragauge.contract.visible import table, time_text, visible
from ragauge.plugins.upkeep import check, details, listing, removal
from ragauge.plugins.upkeep.listing import Item, row, size_text, words_on
from ragauge.store.vectors import KINDS, segment_damage

_LEDGER = "ledger.db"


def ls(root: Path, stage: str | None, sort: str | None) -> int:
    """Prints a table of the entries, sums by stage, and the sizes of vectors and other files."""
    items = listing.list_items(root)
    length = listing.prefix_length(items)
    stages = {item.stage: [other for other in items if other.stage == item.stage] for item in items}
    if stage is not None:
        if stage not in stages:
            raise ConfigError(f"--stage {stage}: {details.holds(root, items)}")
        items, stages = stages[stage], {stage: stages[stage]}
    if sort is not None:
        items.sort(key=(lambda i: i.size) if sort == "size" else (lambda i: -i.used), reverse=True)
    head = ("stage", "digest", "size", "made", "last used", "what made it")
    print(table([head, *(row(item, length) for item in items)], right=(2,)))
    sums = [(name, f"{len(of)}", size_text(sum(i.size for i in of))) for name, of in stages.items()]
    total = ("total", f"{len(items)}", size_text(sum(item.size for item in items)))
    print("\n" + table([("stage", "entries", "size"), *sums, total], right=(1, 2)))
    if stage is None:
        _print_beside(root, items)
    return 0


def _print_beside(root: Path, items: Sequence[Item]) -> None:
    models = listing.models_of(items)
    for vectors in listing.list_vectors(root):
        print(f"{vectors.name}: {words_on(vectors, models)}, in {len(vectors.segments)} segments")
    known = {*KINDS, *(item.stage for item in items)}
    for path in sorted(path for path in root.glob("[!.]*") if path.name not in known):
        words = ", the LLM calls that were paid for; see ragauge ledger" if path.name == _LEDGER else ""
        size = listing.folder_size(path) if path.is_dir() else path.lstat().st_size
        print(f"{path.name}: {size_text(size)}{words}")


def show(root: Path, target: str, uris: Sequence[str]) -> int:
    """Prints all details of one entry, including the runs that used it."""
    items = listing.list_items(root)
    item = details.find(root, items, target)
    print("\n".join(visible(line) for line in details.detail_lines(item, items)))
    for uri in uris:
        try:
            runs = track.Reader(uri).measured(item.name)
        except ConfigError as error:
            print(f"used by runs: not known ({visible(error)})")
            continue
        print(f"used by {len(runs)} run(s) in MLflow at {redact(uri)}")
        for run in runs:
            sweep = f"sweep {run.tags['sweep_id']}" if "sweep_id" in run.tags else "no sweep"
            print(f"  {run.run_id}  {time_text(run.started)}  {visible(run.name, one_line=True)}  ({sweep})")
    return 0


def verify(root: Path, delete: bool) -> int:
    """Rereads every entry and prints the damaged ones with the reasons; returns 2 if there are any."""
    items = listing.list_items(root)
    length = listing.prefix_length(items)
    segments = [segment for vectors in listing.list_vectors(root) for segment in vectors.segments]
    damaged, removed = 0, 0
    with progress(len(items) + len(segments), "reading again", "entry") as bar:
        for item in items:
            reasons = check.damage(item)
            bar.update()
            if reasons:
                damaged += 1
                removed += delete and removal.remove_item(root, item)
                bar.write(f"damaged: {item.stage}/{item.digest[:length]}: {visible('; '.join(reasons), one_line=True)}")
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
