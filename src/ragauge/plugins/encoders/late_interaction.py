"""`retriever=late_interaction`: a vector for every token, by a model such as ColBERT, compared by MaxSim."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.frames import Batches
from ragauge.contract.option import option
from ragauge.plugins.encoders._encoder import EncoderRetriever, Kind
from ragauge.retrieval.retrievers.ranking import (
    Hits,
    as_transformer,
    check_chunks,
    docno_order,
    rows_with_words,
    run_frame,
    top_hits,
)

_FLOAT32_ERROR = 5e-6  # of an inner product of two vectors of length 1, summed in float32
_DECIMALS = 12  # beyond this a sum is float noise: chunks of equal text score equally, and docno decides
_TOKENS, _QUERIES = 16_384, 32  # tokens of chunks, and questions, that are compared at a time


@option("retriever/late_interaction")
class LateInteraction(EncoderRetriever):
    """The top_k chunks of highest MaxSim, in float64: `score` sums the best inner product of every query token.

    Vectors are those of a `MultiVectorEncoder` of sentence-transformers. All chunks are compared. With long=max a chunk
    has the vectors of all its windows, so that each query token finds its best one anywhere in it.
    Source: Khattab and Zaharia, ColBERT, SIGIR 2020, section 3.3.
    """

    component = "late_interaction"
    kind_of_model: ClassVar[Kind] = "MultiVectorEncoder"
    rows_of_record: ClassVar[int] = 32

    def united(self, windows: list[np.ndarray]) -> np.ndarray:
        """The token vectors of all windows."""
        return np.concatenate(windows)

    def build_index(self, chunks: pd.DataFrame | Batches, folder: Path, tools: Tools) -> None:
        """Writes the token vectors of all chunks, float32 [tokens, d], and the end of each chunk's."""
        if isinstance(chunks, pd.DataFrame):
            check_chunks(chunks)
        counts, d, longest = [0], 0, 0.0
        with (folder / "tokens.bin").open("wb") as file:
            for arrays in self.arrays_of_chunks(chunks, tools):
                vectors = np.concatenate(arrays)
                vectors.tofile(file)
                counts += [len(array) for array in arrays]
                d, longest = vectors.shape[1], max(longest, float(np.linalg.norm(vectors, axis=1).max(initial=0)))
        np.savez(folder / "chunks.npz", ends=np.cumsum(counts), dimensions=d, longest=longest)

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """Maps topics to the chunks of highest MaxSim; breaks ties by docno, also at the cut-off."""
        held = np.load(folder / "chunks.npz")
        index = TokenIndex(folder / "tokens.bin", held["ends"], int(held["dimensions"]))
        order = docno_order(chunks)

        def rank(topics: pd.DataFrame) -> pd.DataFrame:
            asked = rows_with_words(topics)
            arrays = self.arrays(topics["query"].iloc[asked].tolist(), "query", tools)
            queries = {row: array for row, array in zip(asked.tolist(), arrays, strict=True) if len(array)}

            def search(rows: np.ndarray, depth: int) -> Hits:
                found = []
                for start in range(0, len(rows), _QUERIES):
                    some = [(row, queries[row]) for row in rows[start : start + _QUERIES].tolist()]
                    rough = index.scores([query for _, query in some])
                    for (row, query), near in zip(some, rough.T, strict=True):
                        chunk = np.argpartition(-near, min(depth, len(near)) - 1)[:depth]
                        chunk = chunk[np.isfinite(near[chunk])]
                        found.append(Hits(np.full(len(chunk), row), chunk, index.exact(query, chunk)))
                return Hits(*map(np.concatenate, zip(*found, strict=True)))

            norms = [np.linalg.norm(query, axis=1).sum() for query in queries.values()]
            slack = _FLOAT32_ERROR * max(norms, default=0.0) * float(held["longest"])
            hits = top_hits(search, np.array(list(queries), dtype=np.int64), order, self.top_k, slack)
            return run_frame(topics, chunks, hits.topic, hits.chunk, score=hits.score)

        return as_transformer("LateInteraction", rank)


class TokenIndex:
    """The chunks' token vectors, read from disk on demand.

    ends: int64 [chunks + 1], the first token of each chunk, and behind them the number of all tokens.
    """

    def __init__(self, file: Path, ends: np.ndarray, dimensions: int) -> None:
        shape = (int(ends[-1]), dimensions)
        self._tokens = (
            np.memmap(file, dtype=np.float32, mode="r", shape=shape) if shape[0] else np.empty(shape, dtype=np.float32)
        )
        self._ends = ends

    def scores(self, queries: Sequence[np.ndarray]) -> np.ndarray:
        """float32 [chunks, queries]: the MaxSim of each chunk and query; -inf for a chunk without tokens."""
        together = np.concatenate(queries)
        starts = np.cumsum([0, *(len(query) for query in queries[:-1])])
        found = np.full((len(self._ends) - 1, len(queries)), -np.inf, dtype=np.float32)
        for chunk in self._blocks():
            first = self._ends[chunk[0]]
            products = np.asarray(self._tokens[first : self._ends[chunk[-1] + 1]]) @ together.T
            best = np.maximum.reduceat(products, self._ends[chunk] - first, axis=0)
            found[chunk] = np.add.reduceat(best, starts, axis=1)
        return found

    def exact(self, query: np.ndarray, chunk: np.ndarray) -> np.ndarray:
        """float64 [len(chunk)]: the MaxSim of some chunks, each with at least one token."""
        asked = query.astype(np.float64).T
        tokens = (self._tokens[self._ends[i] : self._ends[i + 1]].astype(np.float64) for i in chunk)
        return np.array([(some @ asked).max(axis=0).sum() for some in tokens]).round(_DECIMALS)

    def _blocks(self) -> Iterator[np.ndarray]:
        """The chunks with tokens, in order, in blocks of about `_TOKENS` tokens."""
        there = np.flatnonzero(np.diff(self._ends))
        block = self._ends[there] // _TOKENS
        return iter(np.split(there, np.flatnonzero(np.diff(block)) + 1)) if len(there) else iter(())
