"""`ragauge store gc`: removes what was not used for some days and is needed by no run in MLflow.

A reader sets the time of what it uses before it reads anything: of an entry's `key.json`, of a model's folder of
vectors. An entry is renamed away under its lock before it is removed, and its time read again. If it was used since
it was listed, it is put back. So a reader finds a whole entry or none, and makes it again.
"""

from __future__ import annotations

import math
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ragauge import track
from ragauge.contract.errors import DataError
from ragauge.contract.plain_files import remove_all
from ragauge.contract.progress import progress
from ragauge.contract.redact import redact
from ragauge.contract.visible import table
from ragauge.plugins.upkeep.listing import Item, list_caches, list_items, size_text, state_of
from ragauge.store import DRAFTS
from ragauge.store.vectors import KINDS, claims_of, lock_name

DAY = 86_400.0
_ABANDONED = DAY  # age at which a draft is what a killed process left
_CLOCKS = 120.0  # seconds by which the clocks of two machines may differ


def gc(root: Path, keep_days: float, uris: Sequence[str], dry_run: bool = False) -> int:
    """Removes what was not used for `keep_days` and no kept run needs; prints what stays and goes, with reasons.

    Drafts, which killed processes left, go after a day. Nothing is removed where MLflow cannot be asked. DataError, at
    the end, if something could not be removed.
    """
    now = time.time()
    # Before MLflow is asked: what is used after this moment differs from the list, and stays.
    items = [*list_items(root), *list_caches(root)]
    runs = [run for uri in uris for run in track.Reader(uri).measured()]
    needed = _needs(runs)
    going = [run for run in runs if run.going]
    in_use = min((run.started for run in going), default=math.inf) - _CLOCKS
    lately = f"kept, used within {keep_days:g} days"
    used = "kept, used since a run began that is still going: " + ", ".join(f"{r.name} ({r.run_id})" for r in going[:3])
    again = "kept, used or made again just now"
    gone = "would be removed" if dry_run else "removed"
    fates: dict[str, list[Item]] = {fate: [] for fate in (lately, used, "kept, needed by runs", again, gone)}
    failed = []
    with progress(len(items), "removing", "entry") as bar:
        for item in items:
            bar.update()
            draft = item.stage == DRAFTS
            if item.used >= now - (_ABANDONED if draft else keep_days * DAY):
                fate = lately
            elif item.used >= in_use and not draft:
                fate = used
            elif item.name in needed:
                fate = "kept, needed by runs"
            else:
                try:
                    fate = gone if dry_run or remove(root, item) else again
                except OSError as error:
                    failed.append(f"{item.name} ({error})")
                    continue
            fates[fate].append(item)

    print(f"{len(runs)} kept run(s) in MLflow at {', '.join(map(redact, uris))}")
    for fate, found in fates.items():
        if found:
            print(f"{fate}: {len(found)}, {size_text(sum(item.size for item in found))}")
        if found and fate != lately:
            print(table([(*i.row[:-1], needed.get(i.name, i.row[-1])) for i in found], right=(2,), indent="  "))
    if failed:
        raise DataError(f"{len(failed)} could not be removed, such as {failed[0]}")
    return 0


def _needs(runs: Sequence[track.LoggedRun]) -> Mapping[str, str]:
    """The names of entries that runs recorded, with the runs in words; DataError if a finished job recorded none."""
    silent = [r for r in runs if r.tags.get("role") == "job" and r.status == "FINISHED" and r.entries is None]
    if silent:
        raise DataError(
            f"{len(silent)} finished job(s) in MLflow do not say which entries they used, such as "
            f"{silent[0].name} ({silent[0].run_id}): nothing is removed. Delete these runs in MLflow first"
        )
    needed: dict[str, list[str]] = {}
    for run in runs:
        for name in run.entries or ():
            needed.setdefault(name, []).append(f"{run.name} ({run.run_id})")
    return {name: of[0] + (f" and {len(of) - 1} more" if len(of) > 1 else "") for name, of in needed.items()}


def remove(root: Path, item: Item) -> bool:
    """Removes an entry or a cache; False if it stays, since somebody works on it or used it after it was listed."""
    if item.stage not in KINDS:
        lock = None if item.stage == DRAFTS else f"{item.digest}.lock"
        return _remove(root, item.path, lock, lambda path: state_of(path) == item.state)
    claims = claims_of(root, item.path)

    def unchanged(path: Path) -> bool:
        return state_of(path) == item.state and not any(True for _ in claims.living())

    return _remove(root, item.path, lock_name(item.path), unchanged)


def remove_segment(root: Path, segment: Path) -> bool:
    """Removes one segment; False, and it stays, if a process is writing to its folder."""
    return _remove(root, segment, lock_name(segment.parent), os.path.lexists)


def _remove(root: Path, path: Path, lock: str | None, unchanged: Callable[[Path], bool]) -> bool:
    trash = root / DRAFTS / f"removed-{uuid.uuid4().hex}"
    trash.parent.mkdir(exist_ok=True)
    (root / ".locks").mkdir(exist_ok=True)
    try:
        with FileLock(root / ".locks" / lock, timeout=0) if lock else nullcontext():
            if not unchanged(path):
                return False
            os.rename(path, trash)
            if not unchanged(trash):
                # Unless another machine, whose lock ours does not see, made it again by now.
                with suppress(OSError):
                    os.rename(trash, path)
                with suppress(OSError):
                    remove_all(trash)
                return False
    except (Timeout, FileNotFoundError):
        return False
    remove_all(trash)
    return True
