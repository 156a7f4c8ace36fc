"""Vectors on disk: a model embeds each distinct text, and scores each pair of texts, only once.

`<store>/vectors/<name>/` holds segments: folders of sorted keys (hashes of texts) and their vectors that are
written under a temporary name, renamed, and never changed. `<store>/pair_scores/<name>/` holds the same for
pairs of texts, whose vector is a score. The cache knows no model: who fills it says how. A kill loses the
slice of texts at hand; a damaged segment is dropped and what it held is computed again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from filelock import FileLock, Timeout

from ragauge.contract.errors import DataError
from ragauge.contract.plain_files import open_plain, plain_files, read_json_object, remove_all
from ragauge.contract.progress import progress
from ragauge.store._entries import canonical_json, locked

log = logging.getLogger(__name__)

VECTORS, PAIR_SCORES = "vectors", "pair_scores"
KINDS = (VECTORS, PAIR_SCORES)  # the folders of a store that hold segments

Item = TypeVar("Item", str, tuple[str, str])  # a text, or a pair of texts

_KEY_BYTES = 16
_SLICE = 256  # texts between two writes to the disk: what a kill can lose, and a step of the progress bar
_SLICE_SECONDS = 4.0
_PAUSE, _LONGEST_PAUSE = 0.02, 1.0  # seconds between two looks at what others embed
_SMALL = 16_384  # rows below which a segment is worth merging
_MERGED = 65_536  # rows of a merged segment, about
_ABANDONED = 3600  # seconds after which a draft is what a kill left, not what another machine writes
_MAX_SMALL = 32  # small segments that are kept before they become one


def vectors_name(identity: Mapping[str, Any]) -> str:
    """The name of the folder for the vectors, or the pair scores, of the model with this identity."""
    return hashlib.sha256(canonical_json(identity).encode()).hexdigest()[:32]


class NotComputed(Exception):
    """Raised within `nothing_computed` where vectors or pair scores are not in the store; `stage` needs them."""

    stage = ""


_computes = True


@contextmanager
def nothing_computed() -> Iterator[None]:
    """No vector and no pair score is computed in this process within the block: NotComputed where one would be."""
    global _computes
    before, _computes = _computes, False
    try:
        yield
    finally:
        _computes = before


class VectorCache:
    """The vectors of one model in a store; several processes and machines may use it at a time.

    name: `vectors_name` of the model's identity. title: the text of the progress bar. kind: `vectors` of texts, or
    `pair_scores` of pairs of texts.
    """

    def __init__(self, root: Path, name: str, title: str, kind: str = VECTORS) -> None:
        self.folder = root / kind / name
        self._lock = root / ".locks" / lock_name(self.folder)
        self._claims = claims_of(root, self.folder)
        self._title = title
        self._unit = "text" if kind == VECTORS else "pair"

    def missing(self, texts: Sequence[Item]) -> list[Item]:
        """The texts whose vectors the cache lacks."""
        found, _ = _look_up(_text_keys(texts), self.folder)
        return [texts[i] for i in np.flatnonzero(~found).tolist()]

    def get(
        self,
        texts: Sequence[Item],
        embed: Callable[[list[Item]], np.ndarray | Iterable[tuple[Sequence[int], np.ndarray]]],
        at_once: int | None = None,
    ) -> np.ndarray:
        """Vectors of distinct texts, float32 [len(texts), dimensions]; embeds and keeps missing ones.

        embed: the vectors of the given texts, or pieces of them, (positions, vectors). Each is kept when it comes.

        A slice of texts is claimed at a time, so that processes embed beside each other, and no text is embedded twice.
        Texts that another process embeds are waited for, when all else is done. at_once: texts of a slice at least,
        where many workers embed them; None is 256. With a fast model slices become as large as 4 s allow, up to 65,536
        texts: it leaves large segments, which need not be merged.
        """
        with suppress(OSError):  # no folder yet, or a store that may only be read
            os.utime(self.folder)  # before anything is read: `ragauge store gc` keeps what was used lately
        size = max(at_once or 0, _SLICE)
        keys = _text_keys(texts)
        seen: set[Path] = set()
        found, vectors = _look_up(keys, self.folder, seen)
        # Texts of one length go together, so that little is padded; the longest first.
        missing = np.array(sorted(np.flatnonzero(~found).tolist(), key=lambda i: -_length(texts[i])), dtype=int)
        if vectors is not None and not len(missing):
            return vectors
        if not _computes:
            raise NotComputed
        with locked(self._lock):
            _tidy(self.folder)
        pause = _PAUSE
        with progress(len(missing), self._title, self._unit) as bar:
            while len(missing):
                with locked(self._lock):
                    # Claims first: one that ends after this look has left its vectors for the next look.
                    claimed = self._claims.held(keys[missing])
                    found, more = _look_up(keys[missing], self.folder, seen)
                    if more is not None:
                        vectors = _with_rows(vectors, len(texts), missing[found], more[found])
                    free = missing[~found & ~claimed][:size]
                    missing = missing[~found]
                    claim = self._claims.take(keys[free]) if len(free) else None
                bar.update(int(found.sum()))
                if claim is None:  # what is missing is being embedded by others
                    time.sleep(pause if len(missing) else 0.0)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                    continue
                began = time.monotonic()
                with claim:
                    new = embed([texts[i] for i in free])
                    for rows, part in [(range(len(free)), new)] if isinstance(new, np.ndarray) else new:
                        of_part = free[np.asarray(rows, dtype=np.intp)]
                        seen.add(_write_segment(self.folder, keys[of_part], part))
                        vectors = _with_rows(vectors, len(texts), of_part, part)
                        bar.update(len(of_part))
                missing = missing[~np.isin(missing, free)]
                faster = int(_SLICE_SECONDS / max(time.monotonic() - began, 1e-6))
                size = max(size, min(size * faster, _MERGED))
        assert vectors is not None
        return vectors


def _with_rows(vectors: np.ndarray | None, n: int, rows: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The vectors, float32 [n, d], with those of `new` at `rows`; made where there are none."""
    if vectors is None:
        vectors = np.zeros((n, new.shape[1]), dtype=np.float32)
    if new.shape[1] != vectors.shape[1]:
        raise DataError(f"the embedder gives vectors of {new.shape[1]:,} numbers, and gave {vectors.shape[1]:,} before")
    vectors[rows] = new
    return vectors


def lock_name(folder: Path) -> str:
    """The name of the lock of a model's folder of segments."""
    return f"{folder.parent.name}-{folder.name}.lock"


def claims_of(root: Path, folder: Path) -> Claims:
    """The claims on texts being written to a model's folder of segments in the store at `root`."""
    return Claims(root / ".locks" / Path(lock_name(folder)).with_suffix(".claims"))


def _text_keys(texts: Iterable[str | tuple[str, str]]) -> np.ndarray:
    """bytes [n] of 16: the beginning of the SHA-256 of each text, or of each pair of texts."""

    def key(text: str | tuple[str, str]) -> bytes:
        # The length tells ("ab", "c") from ("a", "bc").
        whole = text if isinstance(text, str) else f"{len(text[0])}:{text[0]}{text[1]}"
        return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).digest()[:_KEY_BYTES]

    return np.array([key(text) for text in texts], dtype=f"S{_KEY_BYTES}")


def _length(text: str | tuple[str, str]) -> int:
    return len(text) if isinstance(text, str) else len(text[0]) + len(text[1])


def _look_up(keys: np.ndarray, folder: Path, seen: set[Path] | None = None) -> tuple[np.ndarray, np.ndarray | None]:
    """The keys that the segments hold, and float32 [len(keys), d] with their vectors (None: no segment).

    Segments of `seen` are left out, and those that were looked at are added to it: they never change.
    """
    found = np.zeros(len(keys), dtype=bool)
    vectors: np.ndarray | None = None
    paths = [path for path in _segments(folder) if seen is None or path not in seen]
    # Neighbours stand near each other in a segment.
    by_key = np.argsort(keys) if paths else np.empty(0, dtype=np.intp)
    for path in paths:
        segment = _open_segment(path)
        if segment is None:
            continue
        if seen is not None:
            seen.add(path)
        held, rows = segment
        if vectors is None:
            vectors = np.zeros((len(keys), rows.shape[1]), dtype=np.float32)
        wanted = by_key[~found[by_key]]
        at = np.minimum(np.searchsorted(held, keys[wanted]), len(held) - 1)
        hit = held[at] == keys[wanted]
        order = np.argsort(at[hit])  # read the file from front to back
        wanted, at = wanted[hit][order], at[hit][order]
        vectors[wanted] = rows[at]
        found[wanted] = True
    return found, vectors


def _segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("segment-*"))


def _write_segment(folder: Path, keys: np.ndarray, vectors: np.ndarray) -> Path:
    """Writes the vectors as a segment and returns its folder."""
    draft = folder / f"draft-{uuid.uuid4().hex}"
    draft.mkdir(parents=True)
    order = np.argsort(keys)
    np.save(draft / "keys.npy", keys[order])
    np.save(draft / "vectors.npy", vectors[order])
    checksums = {name: _crc32(draft / name) for name in ("keys.npy", "vectors.npy")}
    (draft / "checksums.json").write_text(json.dumps(checksums), encoding="utf-8")
    segment = folder / f"segment-{uuid.uuid4().hex}"
    os.rename(draft, segment)
    return segment


def _open_segment(path: Path) -> tuple[np.ndarray, np.ndarray] | None:
    """Sorted keys, and their vectors as a memory map; None for a damaged segment, or one just merged away."""
    damage = segment_damage(path)
    if damage is None:
        with suppress(OSError, ValueError):
            return np.load(path / "keys.npy"), np.load(path / "vectors.npy", mmap_mode="r")
    elif os.path.lexists(path):
        log.warning("%s is damaged (%s); what it held is computed again", path, damage)
    return None


def segment_damage(path: Path) -> str | None:
    """The damage of a segment; None if its plain files are as written."""
    try:
        for _ in plain_files(path):  # raises where one is none
            pass
        checksums = read_json_object(path / "checksums.json", links=False)
        for name in ("keys.npy", "vectors.npy"):
            if _crc32(path / name) != checksums.get(name):
                return f"{name} has another checksum"
        keys, vectors = (np.load(path / name, mmap_mode="r") for name in ("keys.npy", "vectors.npy"))
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    whole = keys.ndim == 1 and keys.dtype == f"S{_KEY_BYTES}" and vectors.ndim == 2 and vectors.dtype.kind == "f"
    return None if whole and len(keys) == len(vectors) > 0 else "it holds no vectors with their keys"


def _crc32(file: Path) -> int:
    stat = file.lstat()
    return _crc32_of(file, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=4096)
def _crc32_of(file: Path, size: int, mtime_ns: int) -> int:
    """Checksum of a plain file, computed once per process while its size and time stay."""
    value = 0
    with open_plain(file, links=False) as stream:
        while block := stream.read(1 << 20):
            value = zlib.crc32(block, value)
    return value


def _tidy(folder: Path) -> None:
    """Removes damaged and unfinished segments, and merges small ones if there are many.

    Under the folder's lock. A kill between the merged segment and the removal of its parts leaves vectors
    twice, which does no harm.
    """
    for draft in folder.glob("draft-*"):
        with suppress(OSError):  # such as one that its process has finished since
            if time.time() - draft.lstat().st_mtime > _ABANDONED:
                remove_all(draft)
    small = []
    for path in _segments(folder):
        segment = _open_segment(path)
        if segment is None:
            _remove_segment(path)
        elif len(segment[0]) < _SMALL:
            small.append((path, *segment))
    if len(small) <= _MAX_SMALL:
        return
    # Some at a time, so that what is merged fits the memory whatever the number of vectors.
    rows_before = np.cumsum([0, *(len(held) for _, held, _ in small[:-1])])
    for number in np.unique(rows_before // _MERGED):
        merged = [small[i] for i in np.flatnonzero(rows_before // _MERGED == number)]
        if len(merged) > 1:
            keys, first = np.unique(np.concatenate([held for _, held, _ in merged]), return_index=True)
            _write_segment(folder, keys, np.concatenate([rows for _, _, rows in merged])[first])
            for path, _, _ in merged:
                _remove_segment(path)


def _remove_segment(path: Path) -> None:
    """Sets a segment aside for a later `_tidy`, since another machine that reads it would crash.

    On a network share the memory map of a file that another machine deletes is gone with it.
    """
    trash = path.with_name(f"draft-{uuid.uuid4().hex}")
    os.rename(path, trash)
    os.utime(trash, follow_symlinks=False)


class Claim:
    """Keys of one piece of work, claimed against other processes until the `with` block ends.

    It is a file of keys, and a lock beside it that its process holds. The operating system releases the lock when the
    process ends, however it ends, and the claim with it.
    """

    def __init__(self, file: Path, lock: FileLock) -> None:
        self._file, self._lock = file, lock

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *error: object) -> None:
        _end(self._file, self._lock)


class Claims:
    """The claims in a folder; its methods are called under one lock of the caller's.

    folder: holds two files for each claim. Processes, and machines where the file system carries locks, see
    each other's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def take(self, keys: np.ndarray) -> Claim:
        """Claims the keys (an array of fixed-width bytes), which no other process may hold."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{uuid.uuid4().hex}.keys"
        lock = FileLock(file.with_suffix(".lock"))
        lock.acquire()
        file.write_bytes(np.ascontiguousarray(keys).tobytes())
        return Claim(file, lock)

    def held(self, keys: np.ndarray) -> np.ndarray:
        """bool [len(keys)]: whether a living process has claimed the key."""
        found = np.zeros(len(keys), dtype=bool)
        for file in self.living():
            with suppress(OSError, ValueError), open_plain(file) as stream:  # done meanwhile, or no claim
                found |= np.isin(keys, np.frombuffer(stream.read(), dtype=keys.dtype))
        return found

    def living(self) -> Iterator[Path]:
        """The files of keys claimed by living processes; removes those of ended processes."""
        for file in self.folder.glob("*.keys"):
            lock = FileLock(file.with_suffix(".lock"), timeout=0)
            try:
                lock.acquire()
            except Timeout:
                yield file
            else:
                _end(file, lock)


def _end(file: Path, lock: FileLock) -> None:
    file.unlink(missing_ok=True)
    file.with_suffix(".lock").unlink(missing_ok=True)
    lock.release()
