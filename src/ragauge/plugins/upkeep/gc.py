"""`ragauge store gc`: removes entries by last use and by the needs of MLflow runs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ragauge import track
from ragauge.contract.errors import DataError
from ragauge.contract.progress import progress
from ragauge.contract.redact import redact
from ragauge.contract.visible import table
from ragauge.plugins.upkeep import listing, removal
from ragauge.plugins.upkeep.listing import Item, Vectors, models_of, row, size_text, words_on


@dataclass
class _Removed:
    """Entries removed (in a dry run: to be removed), kept after all, and impossible to remove."""

    dry_run: bool
    names: set[str] = field(default_factory=set)
    stayed: set[str] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)
    freed: int = 0

    def remove(self, name: str, size: int, remove: Callable[[], bool]) -> None:
        """Removes one thing of so many bytes, by a function that returns whether it succeeded."""
        try:
            done = self.dry_run or remove()
        except OSError as error:
            self.failed.append(f"{name} ({error})")
            return
        (self.names if done else self.stayed).add(name)
        self.freed += size if done else 0


def gc(
    root: Path,
    keep_days: float,
    uris: Sequence[str],
    also_needed: bool = False,
    vectors: bool = False,
    dry_run: bool = False,
) -> int:
    """Removes entries unused for `keep_days` that no kept run needs; prints removed and kept ones with reasons.

    Nothing is removed where MLflow cannot be asked. Removed, too: entries that killed processes left half-made,
    checkpoints of trainings that wrote nothing for `keep_days`, and with `vectors` those of models that no kept entry
    was made with. DataError, at the end, if something could not be removed.
    """
    now = time.time()
    since = now - keep_days * removal.DAY
    # Before MLflow is asked: what is used after this moment differs from the list, and stays.
    items = listing.list_items(root)
    runs = [run for uri in uris for run in track.Reader(uri).measured()]
    needed = {} if also_needed else _needs(runs)
    going = [run for run in runs if run.going]
    choice = removal.choose(items, since, min((run.started for run in going), default=math.inf), needed)
    kept = [*choice.recent, *choice.in_use, *choice.needed]
    old, wanted = removal.choose_vectors(listing.list_vectors(root), kept, since)
    drafts = removal.abandoned_drafts(root, now)
    checkpoints = removal.old_checkpoints(root, since)

    removed = _Removed(dry_run)
    with progress(len(choice.gone) + len(drafts), "removing", "entry") as bar:
        for item in choice.gone:
            removed.remove(item.name, item.size, partial(removal.remove_item, root, item))
            bar.update()
        for draft in drafts:
            size = listing.folder_size(draft)
            removed.remove(str(draft), size, partial(removal.remove_draft, draft))
            bar.update()
    for path in checkpoints:
        removed.remove(
            str(path),
            listing.folder_size(path),
            partial(removal.remove_checkpoints, root, path, since),
        )
    for folder in old if vectors else ():
        removed.remove(folder.name, folder.size, partial(removal.remove_vectors, root, folder))

    length = listing.prefix_length(items)
    gone = "would be removed" if dry_run else "removed"
    print(f"{len(runs)} kept run(s) in MLflow at {', '.join(map(redact, uris))}")
    _print_sum(f"kept, used within {keep_days:g} days", choice.recent)
    names = ", ".join(f"{run.name} ({run.run_id})" for run in going[:3])
    _print_items(f"kept, used since a run began that is still going: {names}", choice.in_use, length)
    _print_items("kept, needed by runs", choice.needed, length, needed)
    stayed = [item for item in choice.gone if item.name in removed.stayed]
    _print_items("kept, used or made again just now", stayed, length)
    _print_items(gone, [item for item in choice.gone if item.name in removed.names], length)
    if drafts:
        print(f"{gone}: {len(removed.names & set(map(str, drafts)))} draft(s) that killed processes left")
    for path in checkpoints:
        fate = gone if str(path) in removed.names else "kept, as a training goes on there"
        print(f"{fate}: {path.relative_to(root).as_posix()}, of a training that did not end")
    models = models_of(items)
    for folder in (*wanted, *old):
        print(f"{_fate(folder, wanted, removed, gone)}: {folder.name}, {words_on(folder, models)}")
    print(f"{size_text(removed.freed)} {'would be' if dry_run else 'were'} freed")
    if removed.failed:
        raise DataError(f"{len(removed.failed)} could not be removed, such as {removed.failed[0]}")
    return 0


def _needs(runs: Sequence[track.LoggedRun]) -> dict[str, list[str]]:
    """The names of entries recorded by runs, with the runs; DataError if a finished job recorded none."""
    jobs = [run for run in runs if run.tags.get("role") == "job"]
    silent = [run for run in jobs if run.status == "FINISHED" and run.entries is None]
    if silent:
        raise DataError(
            f"{len(silent)} finished job(s) in MLflow do not say which entries they used, such as "
            f"{silent[0].name} ({silent[0].run_id}): nothing is removed. Delete these runs in MLflow, or let "
            "--also-needed remove what they need, too"
        )
    needed: dict[str, list[str]] = {}
    for run in runs:
        for name in run.entries or ():
            needed.setdefault(name, []).append(f"{run.name} ({run.run_id})")
    return needed


def _fate(folder: Vectors, wanted: Sequence[Vectors], removed: _Removed, gone: str) -> str:
    if folder in wanted:
        return "kept, new or of a model that made a kept entry"
    if folder.name in removed.names:
        return gone
    if folder.name in removed.stayed:
        return "kept, in use just now"
    return "kept without --vectors, though no kept entry was made with them"


def _print_sum(title: str, items: Sequence[Item]) -> None:
    if items:
        print(f"{title}: {len(items)} entries, {size_text(sum(item.size for item in items))}")


def _print_items(
    title: str, items: Sequence[Item], length: int, needed: Mapping[str, Sequence[str]] | None = None
) -> None:
    """The sum and a line per entry: its maker or, if known, the runs that need it."""
    _print_sum(title, items)
    rows = []
    for item in items:
        *cells, what = row(item, length)
        by = (needed or {}).get(item.name, ())
        if by:
            what = by[0] + (f" and {len(by) - 1} more" if len(by) > 1 else "")
        rows.append((*cells, what))
    if rows:
        print(table(rows, right=(2,), indent="  "))
