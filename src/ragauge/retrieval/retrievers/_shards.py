"""Approximate FAISS indexes of unit vectors, and sharded indexes, each shard searched by its worker.

Vectors are of length 1: what is nearest is most similar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.contract.engine import Engine, Work
from ragauge.contract.errors import DataError

# float32 queries [n, dimensions] and a depth, to int64 [n, depth]: rows of vectors, -1 where no more is found
Search = Callable[[np.ndarray, int], np.ndarray]
_BLOCK = 1 << 17  # vectors that are in memory at a time
_PER_CELL = 39, 256  # vectors that a cell's centre is learned from: as few and as many as FAISS asks for


def hnsw(vectors: np.ndarray, m: int, ef_construction: int, threads: int = 1) -> Any:
    """The graph index of float32 [n, dimensions]; deterministic with one thread."""
    import faiss

    index = faiss.IndexHNSWFlat(vectors.shape[1], m)
    index.hnsw.efConstruction = ef_construction
    with _threads(threads):
        _add(index, vectors)
    return index


def ivf(vectors: np.ndarray, nlist: int | None) -> Any:
    """The cell index of float32 [n, dimensions], with fewer cells than `nlist` for few vectors."""
    import faiss

    few, many = _PER_CELL
    wanted = nlist or round(4 * len(vectors) ** 0.5)
    cells = max(1, min(wanted, len(vectors) // few))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(vectors.shape[1]), vectors.shape[1], cells)
    step = max(1, len(vectors) // (cells * many))
    with _threads(1):
        index.train(np.ascontiguousarray(vectors[::step], dtype=np.float32))
        _add(index, vectors)
    return index


def write(index: Any, file: Path) -> None:
    """Writes the index into a file."""
    import faiss

    faiss.write_index(index, str(file))


def files(folder: Path, shards: int) -> list[Path]:
    """The files of an index of so many shards."""
    return [folder / (f"ann-{number}.faiss" if shards > 1 else "ann.faiss") for number in range(shards)]


def reader(file: Path, wide: int) -> Search:
    """A search of the index of a file; wide is ef_search of hnsw, nprobe of ivf."""
    import faiss

    return searcher(faiss.read_index(str(file)), wide)


def searcher(index: Any, wide: int) -> Search:
    """A search of an index; wide is ef_search of hnsw, nprobe of ivf."""
    return lambda queries, depth: search(index, wide, queries, depth)[1]


def search(index: Any, wide: int, queries: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Rising squared distances, float32 [n, depth], and rows of vectors, -1 where nothing more is found."""
    if hasattr(index, "hnsw"):
        index.hnsw.efSearch = max(wide, depth)
    else:
        index.nprobe = wide
    distance, found = index.search(np.ascontiguousarray(queries, dtype=np.float32), depth)
    return np.asarray(distance), np.asarray(found)


def _add(index: Any, vectors: np.ndarray) -> None:
    for start in range(0, len(vectors), _BLOCK):
        index.add(np.ascontiguousarray(vectors[start : start + _BLOCK], dtype=np.float32))


@contextmanager
def _threads(n: int) -> Iterator[None]:
    """Sets FAISS's number of threads within the block."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


# float32 queries [n, dimensions] and a depth, to what a shard finds: float32 [n, m], higher is nearer, and
# int64 [n, m], rows of all vectors, -1 where no more is found; m is at most the depth
Found = tuple[np.ndarray, np.ndarray]
_QUERIES = 1024  # that are searched for at a time


def bounds(n: int, shards: int) -> list[tuple[int, int]]:
    """First and past-the-last row of every non-empty shard of n vectors."""
    cuts = np.unique(np.linspace(0, n, shards + 1).astype(np.int64)).tolist()
    return list(pairwise(cuts))


@dataclass(frozen=True)
class ExactShard:
    """Compares queries with the vectors of some rows of a file, read on demand."""

    file: Path
    first: int
    last: int

    @cached_property
    def _vectors(self) -> np.ndarray:
        there(self.file)
        return np.asarray(np.load(self.file, mmap_mode="r"))[self.first : self.last]

    def __call__(self, block: tuple[np.ndarray, int]) -> Found:
        import faiss

        queries, depth = block
        depth = min(depth, self.last - self.first)
        score, row = faiss.knn(queries, self._vectors, depth, metric=faiss.METRIC_INNER_PRODUCT)
        return np.asarray(score), np.asarray(row) + self.first


@dataclass(frozen=True)
class ApproximateShard:
    """Searches an approximate index of the vectors from row `first` on."""

    file: Path
    wide: int
    first: int

    @cached_property
    def _index(self) -> Any:
        import faiss

        there(self.file)
        return faiss.read_index(str(self.file))

    def __call__(self, block: tuple[np.ndarray, int]) -> Found:
        distance, row = search(self._index, self.wide, *block)
        return -distance, np.where(row < 0, row, row + self.first)


@dataclass(frozen=True)
class Build:
    """Builds the approximate index of some rows of a file of vectors, and writes it into another file.

    values: the arguments of `build` beside the vectors.
    """

    vectors: Path
    build: Callable[..., Any]
    values: tuple[Any, ...]

    def __call__(self, part: tuple[Path, tuple[int, int]]) -> None:
        file, (first, last) = part
        there(self.vectors)
        write(self.build(np.load(self.vectors, mmap_mode="r")[first:last], *self.values), file)


def there(file: Path) -> None:
    """DataError if a file of the store is missing, as on a worker's machine without the store."""
    if not file.is_file():
        raise DataError(
            f"{file} is not on the machine that works on a shard of it: all machines of the engine need the store at "
            "the same path; engine.shards=1 and retriever.shards=1 search in one process"
        )


class Sharded:
    """Searches shards by the workers of an engine: queries and a depth to rows of vectors.

    As many rows as one index of all vectors gives: int64 [n, depth], -1 where no more is found.
    """

    def __init__(self, engine: Engine, shards: Sequence[Work]) -> None:
        self._held = engine.hold(shards)

    def __call__(self, queries: np.ndarray, depth: int) -> np.ndarray:
        blocks = (queries[start : start + _QUERIES] for start in range(0, len(queries), _QUERIES))
        return np.concatenate([merged(self._held.ask((block, depth)), depth) for block in blocks])


def merged(found: Sequence[Found], depth: int) -> np.ndarray:
    """The nearest over all shards' results, nearest first, int64 [n, depth], -1 for missing ones."""
    score, row = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
    score = np.where(row < 0, -np.inf, score)
    order = np.argsort(-score, axis=1, kind="stable")[:, :depth]
    nearest = np.full((len(row), depth), -1, dtype=np.int64)
    nearest[:, : order.shape[1]] = np.take_along_axis(row, order, axis=1)
    return nearest
