"""Entries of the store: their keys, and how they are read or made.

An entry is a folder `<root>/<stage>/<digest>/`. Its digest is SHA-256 over the canonical JSON of the stage's name, its
version, the parameters that can change its output and the digests of its reads. `key.json` beside the data has these in
clear, without keys and passwords, and the SHA-256 of each file of the entry. An entry is written under a temporary name
and renamed, by one maker at a time; a damaged one is made again. The time of `key.json` is when the entry was last
used. Several machines may share a store: docs/team.md says on what file systems.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from filelock import FileLock

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.frames import Batches
from ragauge.contract.plain_files import remove_all
from ragauge.contract.redact import redact_tree
from ragauge.contract.visible import visible
from ragauge.store._manifest import KEY_FILE, damage_in, damage_in_words, file_sha256, read_manifest, touch
from ragauge.store._parquet import frame_digest, read_rows, write_frame

log = logging.getLogger(__name__)

CHECKPOINTS = "checkpoints"  # <root>/checkpoints/<digest>: what makers keep that may be killed
DRAFTS = ".drafts"  # <root>/.drafts/<name>: entries that are being written
_DECODED_FRAMES = 32  # how many read frames one process keeps at hand


@dataclass(frozen=True)
class Key:
    """Everything that determines an entry; equal keys have equal digests on every machine."""

    stage: str
    version: int
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The hashed content, as plain JSON values."""
        return {"stage": self.stage, "version": self.version, "params": self.params, "inputs": dict(self.inputs)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON."""
        return hashlib.sha256(canonical_json(self.as_dict()).encode()).hexdigest()


def canonical_json(value: Any) -> str:
    """Unique JSON of a value: sorted keys, no white space, no NaN; TypeError for other values than JSON's."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class Entry:
    """A finished stage output: its folder, whether this call made it, and the seconds that took.

    seconds: 0 where this call did not make it; `seconds_made` is how long its maker took.
    """

    key: Key
    path: Path
    made: bool
    seconds: float
    manifest: Mapping[str, Any]
    store: Store

    @property
    def digest(self) -> str:
        """The entry's own digest."""
        return self.key.digest

    @property
    def seconds_made(self) -> float:
        """Seconds that making the entry took, in any process."""
        return float(self.manifest.get("seconds", 0.0))

    @property
    def told(self) -> Mapping[str, Any]:
        """Values recorded about the making, such as its cost."""
        found: Mapping[str, Any] = self.manifest.get("told", {})
        return found

    def frame(self, name: str) -> pd.DataFrame:
        """The stored frame `name`; a private copy (its columns may be replaced, not written into)."""
        return self.store._read_frame(self, name)

    def n_rows(self, name: str) -> int:
        """Number of rows of a stored frame, without reading it."""
        import pyarrow.parquet

        count: int = pyarrow.parquet.read_metadata(self.path / f"{name}.parquet").num_rows
        return count

    def rows(self, name: str) -> pd.DataFrame | Batches:
        """The stored frame `name`; a large one comes in batches that are read on demand."""
        if (self.path, name) not in self.store._decoded:
            with suppress(FileNotFoundError):
                found = read_rows(self.path / f"{name}.parquet")
                if found is not None:
                    return found
        return self.frame(name)

    def frame_digest(self, name: str) -> str:
        """The content digest of a stored frame, equal wherever the same rows were made."""
        digest: str = self.manifest["frames"][name]
        return digest


class Store:
    """Stage outputs under one folder, which several processes and machines may share."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self.made: list[str] = []  # stages that this object had to make, in order
        self.used: set[str] = set()  # <stage>/<digest> of every entry that this object read or made
        self._verified: set[Path] = set()
        self._decoded: OrderedDict[tuple[Path, str], pd.DataFrame] = OrderedDict()

    def folder(self, key: Key) -> Path:
        """The folder of the key's entry, whether it exists or not."""
        return self.root / key.stage / key.digest

    def checkpoints(self, key: Key) -> Path:
        """Folder for the state of the key's maker, from which the next one continues after a kill.

        The folder is no part of the entry; its maker removes it.
        """
        return self.root / CHECKPOINTS / key.digest

    def find(self, key: Key) -> Entry | None:
        """The entry of the key; None if it is absent or damaged."""
        path = self.folder(key)
        # Before anything is read: what is being removed then stays (see the plug-in upkeep). A store
        # that may only be read stays as it is.
        touch(path)
        manifest, _ = self._read(path)
        return None if manifest is None else self._entry(key, False, 0.0, manifest)

    def frame_at(self, entry: str, name: str) -> pd.DataFrame | None:
        """A frame of the entry <stage>/<digest>; None if the entry is absent or damaged, or lacks it."""
        path = self.root / entry
        touch(path)
        manifest, _ = self._read(path)
        if manifest is None or f"{name}.parquet" not in manifest["files"]:
            return None
        return _read_parquet(path, name)

    def has_output_of(self, stage: str, part: Mapping[str, Any]) -> bool:
        """Whether an output of the stage was made with a component of this identity; reads all of the stage's keys."""
        wanted = canonical_json(part)
        for file in (self.root / stage).glob(f"*/{KEY_FILE}"):
            with suppress(ValueError, OSError):
                if wanted in canonical_json(read_manifest(file.parent)["params"]):
                    return True
        return False

    def get(self, key: Key, make: Callable[[Path], None], told: Mapping[str, Any] | None = None) -> Entry:
        """The entry of the key; `make(folder)` fills an empty folder if the entry is not there yet.

        Among several callers in any number of processes one makes it, and the others wait and read. If `make` raises,
        nothing is left behind. The values in `told` after the making are kept in its manifest as `told`. They are JSON
        values on the making, such as its cost, that are no part of the output.
        """
        found = self.find(key)
        if found is not None:
            return found
        with locked(self.root / ".locks" / f"{key.digest}.lock"):
            # Looked at again, since another maker may have made it, or made good its damage, meanwhile.
            found = self.find(key)
            if found is not None:
                return found
            self._remove_damaged(key)
            return self._make(key, make, told)

    def get_frames(
        self, key: Key, make: Callable[[], Mapping[str, pd.DataFrame | Batches]], told: Mapping[str, Any] | None = None
    ) -> Entry:
        """Like `get`, for a stage whose output is frames: each is checked and written as Parquet.

        The frames' names are schema names of `ragauge.contract.frames` where they have a schema.
        """

        def write(folder: Path) -> None:
            for name, frame in make().items():
                write_frame(folder, name, frame, key.stage)

        return self.get(key, write, told)

    def _make(self, key: Key, make: Callable[[Path], None], told: Mapping[str, Any] | None = None) -> Entry:
        path = self.folder(key)
        draft = self.root / DRAFTS / f"{key.stage}-{uuid.uuid4().hex}"
        draft.mkdir(parents=True)
        start = time.perf_counter()
        try:
            make(draft)
            seconds = time.perf_counter() - start
            params = redact_tree(key.as_dict()["params"])
            manifest = {
                **key.as_dict(),
                # Where a secret was taken out, the digest cannot be had from what is left.
                **({"params": params, "redacted": True} if params != key.as_dict()["params"] else {}),
                "files": {
                    file.relative_to(draft).as_posix(): file_sha256(file)
                    for file in sorted(draft.rglob("*"))
                    if file.is_file()
                },
                "frames": {file.stem: frame_digest(file) for file in sorted(draft.glob("*.parquet"))},
                "seconds": seconds,
                **({"told": dict(told)} if told else {}),
            }
            text = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False)
            (draft / KEY_FILE).write_text(text, encoding="utf-8")
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.rename(draft, path)
            except OSError:
                # A maker on another machine, whose lock ours does not see, was first.
                if self._read(path)[0] is None:
                    raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        self.made.append(key.stage)
        self._verified.add(path)
        log.debug("made %s %s in %.2f s", key.stage, key.digest[:12], seconds)
        return self._entry(key, True, seconds, manifest)

    def _entry(self, key: Key, made: bool, seconds: float, manifest: Mapping[str, Any]) -> Entry:
        self.used.add(f"{key.stage}/{key.digest}")
        return Entry(key, self.folder(key), made, seconds, manifest, self)

    def _read(self, path: Path, again: bool = True) -> tuple[dict[str, Any] | None, str]:
        """The manifest of an undamaged entry; else None and the damage ("" for an absent entry).

        Checksums are compared once per process.
        """
        manifest = None
        try:
            manifest = read_manifest(path)
            damaged = [] if path in self._verified else damage_in(path, manifest)
        except FileNotFoundError:
            if not os.path.lexists(path):
                return None, ""
            if again:  # a maker elsewhere may have renamed it into place since: whole, then
                return self._read(path, again=False)
            damaged = ["a missing file"]
        except (ValueError, OSError) as error:
            damaged = [damage_in_words(path, error)]
        if damaged:
            return None, visible(", ".join(damaged), one_line=True)
        self._verified.add(path)
        return manifest, ""

    def _remove_damaged(self, key: Key) -> None:
        """Deletes a damaged entry while holding its lock, so that a good copy written meanwhile is kept."""
        path = self.folder(key)
        _, damage = self._read(path)
        if damage:
            log.warning("store entry %s is damaged (%s); it is made again", path, damage)
            trash = self.root / DRAFTS / f"{key.stage}-{uuid.uuid4().hex}"
            trash.parent.mkdir(exist_ok=True)
            with suppress(FileNotFoundError):  # one whose lock ours does not see was first
                os.rename(path, trash)
            with suppress(OSError):
                remove_all(trash)

    def _read_frame(self, entry: Entry, name: str) -> pd.DataFrame:
        at = (entry.path, name)
        frame = self._decoded.get(at)
        if frame is None:
            frame = _read_parquet(entry.path, name)
            self._decoded[at] = frame
            if len(self._decoded) > _DECODED_FRAMES:
                self._decoded.popitem(last=False)
        self._decoded.move_to_end(at)
        return frame.copy(deep=False)


def _read_parquet(entry: Path, name: str) -> pd.DataFrame:
    """A frame of an entry; DataError if it is absent or no Parquet file."""
    try:
        return pd.read_parquet(entry / f"{name}.parquet")
    except FileNotFoundError:
        raise DataError(f"store entry {entry} holds no frame {name!r}") from None
    except (ValueError, pa.ArrowException) as error:
        raise DataError(
            f"store entry {entry}: {name}.parquet cannot be read as Parquet ({error}); `ragauge store verify "
            "--delete` removes the entry, and a run makes it again"
        ) from None


def default_folder() -> Path:
    """Default store: RAGAUGE_STORE, else .ragauge in the working directory, as in conf/config.yaml."""
    return Path(os.environ.get("RAGAUGE_STORE") or ".ragauge")


def default_ledger(store: Path) -> str:
    """Default ledger of calls: RAGAUGE_LEDGER, else ledger.db in the store."""
    return os.environ.get("RAGAUGE_LEDGER") or str(store / "ledger.db")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock file exclusively among processes, and among machines if the file system supports locks.

    ConfigError where it cannot be locked at all.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire()
    except OSError as error:
        raise ConfigError(
            f"store: {path.parent.parent} cannot be locked ({error.strerror or error}); docs/team.md says "
            "what a shared store needs"
        ) from error
    try:
        yield
    finally:
        lock.release()


def link_files(entry: Path, folder: Path) -> None:
    """Makes a folder with an entry's files: hard links if the file system has them, else copies."""
    folder.mkdir(parents=True)
    for file in sorted(entry.rglob("*")):
        at = folder / file.relative_to(entry)
        if file.is_dir():
            at.mkdir(exist_ok=True)
        elif file != entry / KEY_FILE:
            try:
                at.hardlink_to(file)
            except OSError:
                shutil.copyfile(file, at)
