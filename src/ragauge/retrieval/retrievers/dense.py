"""`retriever=sim`, `mmr`, `reo`: similarity of embeddings. They and `mlq` share one index.

All compare exactly, except `sim` where it is set to search an approximate index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pandas as pd

from ragauge.contract.checks import require, require_choice, require_count, require_number
from ragauge.contract.component import Tools
from ragauge.contract.engine import Engine, LocalEngine
from ragauge.contract.errors import DataError
from ragauge.contract.frames import Batches, count_rows, in_pieces
from ragauge.contract.identity import later
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import Retriever
from ragauge.retrieval.order import long_context_order
from ragauge.retrieval.ranking import ranks_within
from ragauge.retrieval.retrievers import _shards
from ragauge.retrieval.retrievers.ranking import (
    NO_ROWS,
    Hits,
    as_transformer,
    check_chunks,
    docno_order,
    rows_with_words,
    run_frame,
    top_hits,
)

_VECTORS = "vectors.npy"
_WINDOWS = "windows.npy"  # int64 [chunks]: how many vectors in a row are each chunk's; without it one each
# What a batched float32 product may be off by; candidates are compared again in float64.
_FLOAT32_ERROR = 5e-6
# Beyond this the sum of a dot product depends on the processor and on a row's place in the batch. Rounded,
# chunks of equal text are equally similar, and their order falls to the docno.
_DECIMALS = 12
RECALL_DEPTH, _RECALL_TOPICS = 10, 1000
_BLOCK_TEXTS = 1 << 17  # chunks whose vectors are in memory at a time: 200 MB of 384 floats each
_BLOCK_BYTES = 4 << 20  # of float64 candidate vectors at a time: about a processor's cache


class VectorIndex:
    """The unit vectors of the chunks, float32 [vectors, dimensions], read from disk on demand.

    A chunk has one vector, or one for each window of its text (`Embedder.windows`). Its cosine to a query is that
    of its best window. An engine of several shards has its workers compare, each with a part of the vectors.
    """

    def __init__(self, folder: Path, chunks: pd.DataFrame, engine: Engine | None = None) -> None:
        vectors = np.asarray(np.load(folder / _VECTORS, mmap_mode="r" if len(chunks) else None))
        file = folder / _WINDOWS
        counts = np.load(file) if file.is_file() else np.ones(len(chunks), dtype=np.int64)
        if (len(counts), len(vectors)) != (len(chunks), counts.sum()):
            raise DataError(f"{folder / _VECTORS} holds {len(vectors)} vectors for {len(chunks)} chunks")
        self.vectors = vectors
        self._windows = _Windows(counts) if file.is_file() else None
        self.order = docno_order(chunks)
        self.folder = folder
        self.engine: Engine = engine or LocalEngine()

    def nearest(self, queries: np.ndarray, top_k: int, candidates: _shards.Search | None = None) -> Hits:
        """The min(top_k, chunks) chunks of highest cosine to each query, all queries in one search.

        queries: float32 [queries, dimensions], unit vectors; the hits' topic is a query's row. candidates: finds the
            chunks, where that is not an exact search; it may find fewer.
        """
        find = candidates or (self._by_shards if self.engine.shards > 1 else self._exact)
        if self._windows is not None:
            find = self._windows.chunks_by(find)

        def search(rows: np.ndarray, depth: int) -> Hits:
            chunk = find(queries[rows], depth)
            score = np.empty(chunk.shape)
            for block in self.blocks(*chunk.shape):
                score[block] = self._cosines(queries[rows[block]].astype(np.float64), chunk[block])
            hits = Hits(np.repeat(rows, depth), chunk.ravel(), score.ravel())
            there = hits.chunk >= 0
            return hits if there.all() else Hits(*(values[there] for values in hits))

        return top_hits(search, np.arange(len(queries)), self.order, top_k, slack=_FLOAT32_ERROR)

    def _exact(self, queries: np.ndarray, depth: int) -> np.ndarray:
        """IndexFlatIP's own search, without its copy of the vectors."""
        import faiss

        _, chunk = faiss.knn(queries, self.vectors, depth, metric=faiss.METRIC_INNER_PRODUCT)
        return np.asarray(chunk)

    @cached_property
    def _by_shards(self) -> _shards.Search:
        file = (self.folder / _VECTORS).absolute()
        rows = _shards.bounds(len(self.vectors), self.engine.shards)
        return _shards.Sharded(self.engine, [_shards.ExactShard(file, *of_shard) for of_shard in rows])

    def _cosines(self, queries: np.ndarray, chunk: np.ndarray) -> np.ndarray:
        """float64 [queries, depth]: the cosine of each query, float64 [queries, dimensions], to each of its chunks."""
        if self._windows is None:
            return _dot(queries[:, None], self.rows(chunk))[:, 0]
        vector, first, counts = self._windows.of(chunk.ravel())
        query = np.repeat(np.repeat(np.arange(len(queries)), chunk.shape[1]), counts)
        cosine = np.einsum("ij,ij->i", queries[query], self.vectors[vector].astype(np.float64)).round(_DECIMALS)
        return np.maximum.reduceat(cosine, first).reshape(chunk.shape)

    def rows(self, chunk: np.ndarray) -> np.ndarray:
        """The vectors of the chunks, in float64; of one with several windows the mean of theirs, at unit length."""
        if self._windows is None:
            return self.vectors[chunk].astype(np.float64)
        vector, first, _ = self._windows.of(chunk.ravel())
        sums = np.add.reduceat(self.vectors[vector].astype(np.float64), first, axis=0)
        return (sums / np.linalg.norm(sums, axis=1, keepdims=True)).reshape(*chunk.shape, -1)

    def blocks(self, n_topics: int, depth: int) -> Iterator[slice]:
        """Slices of topics whose `depth` candidate vectors each fit the memory bound."""
        most = 1 if self._windows is None else self._windows.most
        size = max(1, _BLOCK_BYTES // (8 * depth * most * self.vectors.shape[1]))
        return (slice(start, start + size) for start in range(0, n_topics, size))


class _Windows:
    """Which vectors are those of which chunk, where chunks have several: `counts` of the chunks, int64 [chunks]."""

    def __init__(self, counts: np.ndarray) -> None:
        self.counts = counts
        self.first = np.cumsum(counts) - counts
        self.owner = np.repeat(np.arange(len(counts)), counts)
        self.most = int(counts.max(initial=1))

    def of(self, chunk: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The vectors of the chunks one after the other, where each chunk's begin among them, and how many it has."""
        counts = self.counts[chunk]
        first = np.cumsum(counts) - counts
        return np.repeat(self.first[chunk] - first, counts) + np.arange(counts.sum()), first, counts

    def chunks_by(self, find: _shards.Search) -> _shards.Search:
        """A search of chunks by their best windows, from a search of windows.

        It asks for more windows until `depth` chunks are among them: a chunk that is not has no better window.
        """

        def search(queries: np.ndarray, depth: int) -> np.ndarray:
            found = np.full((len(queries), depth), -1, dtype=np.int64)
            pending, wide = np.arange(len(queries)), min(2 * depth, len(self.owner))
            while len(pending):
                lacking = []
                for row, window in zip(pending, find(queries[pending], wide), strict=True):
                    chunk = self.owner[window[window >= 0]]
                    distinct = chunk[np.sort(np.unique(chunk, return_index=True)[1])][:depth]
                    if len(distinct) < depth and len(chunk) == wide < len(self.owner):
                        lacking.append(row)
                    else:
                        found[row, : len(distinct)] = distinct
                pending, wide = np.array(lacking, dtype=np.int64), min(4 * wide, len(self.owner))
            return found

        return search


def _blocks(chunks: pd.DataFrame | Batches) -> Iterator[list[str]]:
    """The texts of the chunks in blocks; one empty block without chunks."""
    none = True
    for some in in_pieces(chunks, _BLOCK_TEXTS):
        none = False
        yield some["text"].tolist()
    if none:
        yield []


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Inner products of the rows of a [..., n, d] and b [..., m, d], both float64, as float64 [..., n, m]."""
    return (a @ b.swapaxes(-1, -2)).round(_DECIMALS)


def _write_header(file: BinaryIO, n: int, dimensions: int) -> None:
    """The header of a .npy file of float32 [n, dimensions]; as long for any n."""
    header = {"descr": "<f4", "fortran_order": False, "shape": (n, dimensions)}
    np.lib.format.write_array_header_1_0(file, header)


class Dense(Retriever):
    """Shared part of the retrievers over the vector index: the index, and embedding of queries."""

    uses = frozenset({"embedder"})
    index_uses = frozenset({"embedder"})
    indexes_batches = True
    search_columns = ("docno",)
    space = "dense"

    def index_identity(self) -> Mapping[str, Any]:
        """Equal for all dense retrievers."""
        return {"index": "dense", "version": 1}

    def build_index(self, chunks: pd.DataFrame | Batches, folder: Path, tools: Tools) -> None:
        """Writes the chunks' vectors, float32 [vectors, dimensions], in their order.

        Straight into the file, a block of chunks at a time: memory does not grow with the index. Where the embedder
        divides texts into windows, each window has a vector, and a second file has their number by chunk.
        """
        n_chunks, start, width = count_rows(chunks), 0, 0
        counts: list[int] | None = None
        if isinstance(chunks, pd.DataFrame):
            check_chunks(chunks)
        with (folder / _VECTORS).open("wb") as file:
            for texts in _blocks(chunks):
                windows = tools.embedder.windows(texts)
                if windows is not None:
                    counts = [*(counts or ()), *map(len, windows)]
                    texts = [window for of_text in windows for window in of_text]
                vectors = np.ascontiguousarray(tools.embedder.embed(texts), dtype=np.float32)
                if start == 0:
                    width = vectors.shape[1]
                    _write_header(file, n_chunks, width)
                vectors.tofile(file)
                start += len(vectors)
            if counts is not None:
                file.seek(0)
                _write_header(file, start, width)
        if counts is not None:
            np.save(folder / _WINDOWS, np.array(counts, dtype=np.int64))
        if (start if counts is None else len(counts)) != n_chunks:
            raise DataError(f"{folder / _VECTORS} holds {start} vectors of {n_chunks} chunks")

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """Topics to their nearest chunks, in the retriever's own order."""
        index = VectorIndex(folder, chunks, tools.engine)

        def rank(topics: pd.DataFrame) -> pd.DataFrame:
            rows = rows_with_words(topics)
            if len(rows) == 0 or len(chunks) == 0:
                return run_frame(topics, chunks, NO_ROWS, NO_ROWS, **{self._cosine_as: np.empty(0)})
            if "query_vec" in topics:  # of a rewriter
                queries = np.stack(topics["query_vec"].iloc[rows].tolist())
                topics = topics.drop(columns="query_vec")
            else:
                queries = tools.embedder.embed(topics["query"].iloc[rows].tolist(), "query")
            hits = self._retrieve(index, queries.astype(np.float32, copy=False))
            return run_frame(topics, chunks, rows[hits.topic], hits.chunk, **{self._cosine_as: hits.score})

        return as_transformer(type(self).__name__, rank)

    def _retrieve(self, index: VectorIndex, queries: np.ndarray) -> Hits:
        """Hits in rank order, their score the cosine to the query."""
        raise NotImplementedError

    @property
    def _cosine_as(self) -> str:
        """The run's column for cosines: `score` only if they determine the order."""
        return "similarity"


def recall_rows(topics: pd.DataFrame) -> np.ndarray:
    """Rows of at most 1,000 evenly spread topics for measuring recall, int64."""
    rows = rows_with_words(topics)
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), _RECALL_TOPICS)).astype(np.int64)]


def exact_nearest(queries: np.ndarray, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Hits:
    """The ten chunks of highest cosine to each query, float32 [queries, dimensions], by an exact search.

    folder: an empty folder, which the chunks' vectors are written to.
    """
    Dense().build_index(chunks, folder, tools)
    return VectorIndex(folder, chunks).nearest(queries, RECALL_DEPTH)


@option("retriever/sim")
class Sim(Dense):
    """The top_k chunks of highest cosine similarity; `score` is the cosine.

    index: `exact` compares with every chunk; `hnsw` and `ivf` only with those that an approximate index
    leads to, whose cosines are exact, and `recall` says what they miss. m, ef_construction: neighbours of a
    chunk in the graph of hnsw, and how many are looked at when it is built; ef_search: how many when it is
    searched. nlist: cells of ivf, None is 4 * sqrt(chunks); nprobe: how many of them are searched.
    shards: approximate indexes that the chunks are split among, each built and searched by itself.
    Sources: Malkov and Yashunin, 2018; Jégou, Douze and Schmid, 2011; both by FAISS.
    """

    component = "sim"

    top_k: int = CONF
    index: Literal["exact", "hnsw", "ivf"] = later("exact")
    m: int = later(16)
    ef_construction: int = later(100)
    ef_search: int = later(100)
    nlist: int | None = later(None)
    nprobe: int = later(32)
    shards: int = later(1)

    def __post_init__(self) -> None:
        require_count("retriever.top_k", self.top_k)
        require_choice("retriever.index", self.index, ("exact", "hnsw", "ivf"))
        require_count("retriever.m", self.m, 2, most=512)
        for name in ("ef_construction", "ef_search", "nprobe"):
            require_count(f"retriever.{name}", getattr(self, name))
        require_count("retriever.nlist", self.nlist, null="4 * sqrt(chunks)")
        require_count("retriever.shards", self.shards)
        require("retriever.shards", self.shards, self.approximate or self.shards == 1,
                "1 with index=exact, whose search is split by engine.shards")  # fmt: skip

    @property
    def approximate(self) -> bool:
        """Whether the search may miss chunks."""
        return self.index != "exact"

    def index_identity(self) -> Mapping[str, Any]:
        """The common identity of dense retrievers for exact search, else the approximate index's."""
        if not self.approximate:
            return super().index_identity()
        names = ("m", "ef_construction") if self.index == "hnsw" else ("nlist",)
        return {
            **super().index_identity(),
            "ann": self.index,
            **{name: getattr(self, name) for name in names},
            **({"shards": self.shards} if self.shards > 1 else {}),
        }

    def build_index(self, chunks: pd.DataFrame | Batches, folder: Path, tools: Tools) -> None:
        """Writes the vectors and, beside them, the approximate index."""
        super().build_index(chunks, folder, tools)
        if self.approximate and count_rows(chunks):
            n_vectors = len(np.load(folder / _VECTORS, mmap_mode="r"))
            rows = _shards.bounds(n_vectors, self.shards)
            build = _shards.hnsw if self.index == "hnsw" else _shards.ivf
            values = (self.m, self.ef_construction) if self.index == "hnsw" else (self.nlist,)
            work = _shards.Build(folder.absolute() / _VECTORS, build, values)
            for _ in tools.engine.map(work, zip(self._files(folder), rows, strict=False)):
                pass

    def _files(self, folder: Path) -> list[Path]:
        return [file.absolute() for file in _shards.files(folder, self.shards)]

    def recall(self, topics: pd.DataFrame, chunks: pd.DataFrame, folder: Path, tools: Tools) -> float:
        """Share of the ten most similar chunks that the search finds, of 1,000 topics at most.

        1 where no topic can be searched for.
        """
        rows = recall_rows(topics)
        if len(rows) == 0 or len(chunks) == 0:
            return 1.0
        queries = tools.embedder.embed(topics["query"].iloc[rows].tolist(), "query")
        queries, index = queries.astype(np.float32, copy=False), VectorIndex(folder, chunks, tools.engine)
        exact = index.nearest(queries, RECALL_DEPTH)
        near = index.nearest(queries, max(self.top_k, RECALL_DEPTH), self._candidates(index))
        near = Hits(*(values[ranks_within(near.topic) < RECALL_DEPTH] for values in near))
        wanted, found = (hits.topic * len(chunks) + hits.chunk for hits in (exact, near))
        return float(np.isin(wanted, found).mean())

    def _candidates(self, index: VectorIndex) -> _shards.Search | None:
        if not self.approximate:
            return None
        wide = self.ef_search if self.index == "hnsw" else self.nprobe
        rows = _shards.bounds(len(index.vectors), self.shards)
        files = self._files(index.folder)[: len(rows)]
        if not all(file.is_file() for file in files):
            raise DataError(f"{index.folder} holds no approximate index")
        if len(files) == 1:
            return _shards.reader(files[0], wide)
        held = zip(files, rows, strict=True)
        return _shards.Sharded(index.engine, [_shards.ApproximateShard(file, wide, first) for file, (first, _) in held])

    def _retrieve(self, index: VectorIndex, queries: np.ndarray) -> Hits:
        return index.nearest(queries, self.top_k, self._candidates(index))

    @property
    def _cosine_as(self) -> str:
        return "score"


@option("retriever/mmr")
class MMR(Dense):
    """Maximal marginal relevance over the fetch_k most similar chunks.

    The next chunk has the highest lambda_mult * cosine to the query - (1 - lambda_mult) * highest cosine to a chunk
    already taken. lambda_mult is in [0, 1], and 1 is `sim`. The order is the result: `score` is 1 / (rank + 1), the
    cosine to the query stands in `similarity`. Source: Carbonell and Goldstein, The Use of MMR, SIGIR 1998, in
    LangChain's form.
    """

    component = "mmr"

    top_k: int = CONF
    fetch_k: int = CONF
    lambda_mult: float = CONF

    def __post_init__(self) -> None:
        require_count("retriever.top_k", self.top_k)
        require_count("retriever.fetch_k", self.fetch_k, self.top_k, "top_k")
        require_number("retriever.lambda_mult", self.lambda_mult, 0, 1)

    def _retrieve(self, index: VectorIndex, queries: np.ndarray) -> Hits:
        near = index.nearest(queries, self.fetch_k)
        chunk, cosine = (values.reshape(len(queries), -1) for values in near[1:])
        top_k = min(self.top_k, chunk.shape[1])
        picked = np.empty((len(queries), top_k), dtype=np.int64)
        for block in index.blocks(*chunk.shape):
            candidates = index.rows(chunk[block])
            between = _dot(candidates, candidates)
            picked[block] = mmr_order(cosine[block], between, self.lambda_mult, top_k)
        return Hits(
            np.repeat(np.arange(len(queries)), top_k),
            np.take_along_axis(chunk, picked, axis=1).ravel(),
            np.take_along_axis(cosine, picked, axis=1).ravel(),
        )


def mmr_order(to_query: np.ndarray, between: np.ndarray, lambda_mult: float, top_k: int) -> np.ndarray:
    """The candidates in the order in which MMR takes them, int64 [topics, top_k].

    to_query: [topics, candidates] cosines to the query; between: [topics, candidates, candidates] cosines
    between the candidates. Among equals the first candidate is taken. The most similar one comes first.
    """
    topics = np.arange(len(to_query))
    picked = np.empty((len(to_query), top_k), dtype=np.int64)
    taken = np.zeros(to_query.shape, dtype=bool)
    redundancy = np.full(to_query.shape, -np.inf)
    choice = to_query.argmax(axis=1)
    for step in range(top_k):
        picked[:, step] = choice
        taken[topics, choice] = True
        redundancy = np.maximum(redundancy, between[topics, choice])
        marginal = lambda_mult * to_query - (1 - lambda_mult) * redundancy
        choice = np.where(taken, -np.inf, marginal).argmax(axis=1)
    return picked


@option("retriever/reo")
class Reo(Dense):
    """`sim` in long-context order: the most similar chunks at both ends, the least similar in the middle.

    reorder: `after_cut` reorders the chunks that fit the budget (the run itself is that of `sim`). `before_cut`
    reorders all top_k and cuts afterwards, which for an even number of chunks cuts the best one off first. There the
    order is the result: `score` is 1 / (rank + 1), the cosine stands in `similarity`.
    """

    component = "reo"
    top_k: int = CONF
    reorder: Literal["after_cut", "before_cut"] = CONF

    def __post_init__(self) -> None:
        require_count("retriever.top_k", self.top_k)
        require_choice("retriever.reorder", self.reorder, ("after_cut", "before_cut"))

    @property
    def reorder_after_cut(self) -> bool:
        """Whether the context is reordered after the cut."""
        return self.reorder == "after_cut"

    def _retrieve(self, index: VectorIndex, queries: np.ndarray) -> Hits:
        hits = index.nearest(queries, self.top_k)
        if self.reorder_after_cut:
            return hits
        rows = [values.reshape(len(queries), -1) for values in hits]
        order = long_context_order(rows[0].shape[1])
        return Hits(*(values[:, order].ravel() for values in rows))

    @property
    def _cosine_as(self) -> str:
        return "score" if self.reorder_after_cut else "similarity"
