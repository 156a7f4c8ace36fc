"""Approximate indexes of unit vectors, by FAISS. Vectors are of length 1: what is nearest is most similar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

# float32 queries [n, dimensions] and a depth, to int64 [n, depth]: rows of vectors, -1 where no more is found
Search = Callable[[np.ndarray, int], np.ndarray]
_BLOCK = 1 << 17  # vectors that are in memory at a time
_PER_CELL = 39, 256  # vectors that a cell's centre is learned from: as few and as many as FAISS asks for


def hnsw(vectors: np.ndarray, m: int, ef_construction: int, threads: int = 1) -> Any:
    """The graph index of float32 [n, dimensions]; by one thread it is the same each time."""
    import faiss

    index = faiss.IndexHNSWFlat(vectors.shape[1], m)
    index.hnsw.efConstruction = ef_construction
    with _threads(threads):
        _add(index, vectors)
    return index


def ivf(vectors: np.ndarray, nlist: int | None) -> Any:
    """The index of cells of float32 [n, dimensions]; fewer cells than asked for where vectors are few."""
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
    """What searches the index of a file; wide is ef_search of hnsw, nprobe of ivf."""
    import faiss

    return searcher(faiss.read_index(str(file)), wide)


def searcher(index: Any, wide: int) -> Search:
    """What searches an index; wide is ef_search of hnsw, nprobe of ivf."""
    return lambda queries, depth: search(index, wide, queries, depth)[1]


def search(index: Any, wide: int, queries: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """float32 [n, depth] squared distances, rising, and the rows of vectors, -1 where no more is found."""
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
    """FAISS works with so many threads while the block lasts."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
