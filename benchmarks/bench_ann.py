"""`sim` over HNSW against the exact search of FAISS at 1,000,000 vectors: time per question and recall@10.

Vectors of as many dimensions as MiniLM's: a mixture of 20,000 clusters that lie in 32 dimensions of their
own, as embeddings of a corpus do (random vectors without structure have no neighbours worth the name). Both
searches work on the vectors alone, all questions in one call. The graph is built by all cores here.
`python bench_ann.py 1000000 128` takes so many vectors of so many dimensions.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np
from timing import against, interleaved, print_header, print_row

from ragauge.retrieval.retrievers import _shards

N, N_QUERIES, DIMENSIONS = 1_000_000, 200, 384
CLUSTERS, INNER = 20_000, 32
M, EF_CONSTRUCTION = 16, 40
ROUNDS = 3
TOP_K, RECALL, TIMES = 10, 0.99, 10  # goals: recall@10 and times exact search


def mixture(n: int, seed: int, dimensions: int) -> np.ndarray:
    """float32 [n, dimensions], unit vectors; the clusters are the same for every seed."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CLUSTERS, INNER)).astype(np.float32)
    lift = (rng.normal(size=(INNER, dimensions)) / INNER**0.5).astype(np.float32)
    rng = np.random.default_rng(seed)
    found = np.empty((n, dimensions), dtype=np.float32)
    for start in range(0, n, 100_000):
        rows = found[start : start + 100_000]
        inner = centres[rng.integers(CLUSTERS, size=len(rows))]
        inner = inner + 0.6 * rng.standard_normal(inner.shape, dtype=np.float32)
        rows[:] = inner @ lift + 0.1 * rng.standard_normal(rows.shape, dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return found


def main(n: int = N, dimensions: int = DIMENSIONS) -> None:
    """Prints the table."""
    import faiss

    vectors, queries = mixture(n, 1, dimensions), mixture(N_QUERIES, 2, dimensions)
    start = time.perf_counter()
    index = _shards.hnsw(vectors, M, EF_CONSTRUCTION, threads=os.cpu_count() or 1)
    built = time.perf_counter() - start

    def exact() -> np.ndarray:
        return np.asarray(faiss.knn(queries, vectors, TOP_K, metric=faiss.METRIC_INNER_PRODUCT)[1])

    best = exact()
    for ef_search in (16, 32, 64, 128, 256, 512):
        search = _shards.searcher(index, ef_search)
        found = search(queries, TOP_K)
        recall = float(np.mean([np.isin(a, b).mean() for a, b in zip(best, found, strict=True)]))
        if recall >= RECALL:
            break
    seconds, _ = interleaved({"exact": exact, "hnsw": lambda: search(queries, TOP_K)}, ROUNDS)
    times = seconds["exact"] / seconds["hnsw"]
    print_header("what", "HNSW", "exact (faiss.knn)", "ratio", "recall@10")
    print_row(
        f"{N_QUERIES} questions over {n:,} vectors of {dimensions} dimensions, m={M}, "
        f"ef_construction={EF_CONSTRUCTION}, ef_search={ef_search}; built in {built:.0f} s",
        f"{1000 * seconds['hnsw'] / N_QUERIES:.2f} ms each",
        f"{1000 * seconds['exact'] / N_QUERIES:.2f} ms each",
        f"{times:.0f}x{against(TIMES, times)}",
        f"{recall:.3f}{against(RECALL, recall)}",
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
