"""Chooses removable entries of a store, and removes them while other processes read and write.

A reader sets the time of `key.json` before it reads anything. An entry is renamed away under its lock, and its time
looked at again. If it was used since it was chosen, it is put back. So a reader finds a whole entry or none, and makes
it again.
"""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from ragauge.contract.plain_files import remove_all
from ragauge.plugins.upkeep.listing import Item, Vectors, model_of, models_of, state_of
from ragauge.store import CHECKPOINTS
from ragauge.store.vectors import KINDS, claims_of, lock_name

DAY = 86_400.0
_ABANDONED = DAY  # age at which a draft is what a killed process left
_CLOCKS = 120.0  # seconds by which the clocks of two machines may differ


@dataclass(frozen=True)
class Choice:
    """Entries that may go, and those that stay: used lately, used by a running job, needed by a run."""

    gone: list[Item]
    recent: list[Item]
    in_use: list[Item]
    needed: list[Item]


def choose(
    items: Sequence[Item],
    used_since: float,
    in_use_since: float,
    needed: Mapping[str, Sequence[str]],
) -> Choice:
    """Entries that may go: unused since a time and since a running job began, and needed by no run.

    Times are seconds since 1970; `in_use_since` is infinite where no job runs. `needed` has the names
    (<stage>/<digest>) of entries that kept runs need.
    """
    choice = Choice([], [], [], [])
    for item in items:
        if item.used >= used_since:
            choice.recent.append(item)
        elif item.used >= in_use_since - _CLOCKS:
            choice.in_use.append(item)
        elif item.name in needed:
            choice.needed.append(item)
        else:
            choice.gone.append(item)
    return choice


def choose_vectors(
    vectors: Sequence[Vectors], kept: Sequence[Item], used_since: float
) -> tuple[list[Vectors], list[Vectors]]:
    """Vectors that may go, and those that stay: written since a time, or of a kept entry's model.

    Pair scores are treated as vectors are.
    """
    models = models_of(kept)
    gone: list[Vectors] = []
    stay: list[Vectors] = []
    for folder in vectors:
        (stay if model_of(folder, models) or folder.written >= used_since else gone).append(folder)
    return gone, stay


def remove_item(root: Path, item: Item) -> bool:
    """Removes an entry; False, and it stays, if it was used or remade since it was listed."""
    lock = f"{item.digest}.lock"
    return _remove(root, item.path, lock, lambda path: state_of(path) == item.state)


def remove_vectors(root: Path, vectors: Vectors) -> bool:
    """Removes the vectors of a model; False, and they stay, if a process is writing or wrote more."""
    listed = {segment.name for segment in vectors.segments}
    claims = claims_of(root, vectors.path)

    def unchanged(path: Path) -> bool:
        same = {segment.name for segment in path.glob("segment-*")} == listed
        return same and not any(True for _ in claims.living())

    return _remove(root, vectors.path, lock_name(vectors.path), unchanged)


def remove_segment(root: Path, segment: Path) -> bool:
    """Removes one segment; False, and it stays, if a process is writing to its folder."""
    return _remove(root, segment, lock_name(segment.parent), os.path.lexists)


def _remove(root: Path, path: Path, lock: str, unchanged: Callable[[Path], bool]) -> bool:
    trash = root / ".drafts" / f"removed-{uuid.uuid4().hex}"
    trash.parent.mkdir(exist_ok=True)
    (root / ".locks").mkdir(exist_ok=True)
    try:
        with FileLock(root / ".locks" / lock, timeout=0):
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


def old_checkpoints(root: Path, used_since: float) -> list[Path]:
    """Training checkpoints without writes since a time."""
    folders = sorted(path for path in root.glob(f"{CHECKPOINTS}/*") if path.is_dir())
    return [folder for folder in folders if _newest(folder) < used_since]


def remove_checkpoints(root: Path, folder: Path, used_since: float) -> bool:
    """Removes the checkpoints of a training; False, and they stay, if it runs or wrote more meanwhile."""
    return _remove(root, folder, f"{folder.name}.lock", lambda path: _newest(path) < used_since)


def abandoned_drafts(root: Path, now: float) -> list[Path]:
    """Drafts without writes for a day, left by killed processes."""
    drafts = [*root.glob(".drafts/*"), *(path for kind in KINDS for path in root.glob(f"{kind}/*/draft-*"))]
    return [draft for draft in drafts if now - _newest(draft) > _ABANDONED]


def remove_draft(draft: Path) -> bool:
    """Removes a draft."""
    remove_all(draft)
    return True


def _newest(folder: Path) -> float:
    try:
        return max(path.lstat().st_mtime for path in (folder, *folder.rglob("*")))
    except FileNotFoundError:  # somebody is at work in it
        return math.inf
