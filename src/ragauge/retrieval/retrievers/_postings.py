"""An inverted index in a folder, and BM25 over it by sparse products (scipy).

The index holds counts and lengths and no scores, so that one index serves every k1, b and formula:

    terms.parquet   term: every term, in the order in which the texts first hold them
    starts.npy      int64 [terms + 1]: where the postings of each term begin
    chunks.npy      int32 [postings]: the chunks that hold the term, rising
    counts.npy      unsigned [postings]: how often each of them holds it
    lengths.npy     int32 [chunks]: the words of each chunk, stop words included

The postings are mapped into memory: a search reads those of its own terms. Texts are inverted in blocks, whose postings
are merged when all texts are read; so memory holds a block, the terms, and a few bytes a chunk.
"""

from __future__ import annotations

import shutil
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ragauge.contract.engine import Engine, LocalEngine
from ragauge.contract.errors import ConfigError, DataError
from ragauge.retrieval.retrievers.ranking import NO_ROWS, Hits
from ragauge.texts.terms import Analysis

FORMULAS = ("lucene", "robertson", "atire")
_TEXTS_AT_ONCE = 16_384  # in a block
_POSTINGS_AT_ONCE = 8_000_000  # that a product of a search reads: a few hundred MB with its result


class Block(NamedTuple):
    """The postings of some consecutive chunks.

    terms: in the order in which the texts first hold them. starts: int64 [terms + 1]. chunks (from 0, rising) and
    counts: [postings]. lengths: int32 [chunks].
    """

    terms: list[str]
    starts: np.ndarray
    chunks: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray


@dataclass(frozen=True)
class Inverting:
    """Inverts texts to a `Block`."""

    analysis: Analysis

    def __call__(self, texts: Sequence[str]) -> Block:
        from scipy import sparse

        of_word: defaultdict[str, int] = defaultdict()
        of_word.default_factory = of_word.__len__
        found = [np.fromiter(map(of_word.__getitem__, self.analysis.words(text)), np.int64) for text in texts]
        lengths = np.array([len(words) for words in found], dtype=np.int32)
        of_term: defaultdict[str, int] = defaultdict()
        of_term.default_factory = of_term.__len__
        term_of_word = np.fromiter(map(of_term.__getitem__, self.analysis.terms(list(of_word))), np.int64)
        terms = term_of_word[np.concatenate([NO_ROWS, *found])]
        chunks = np.repeat(np.arange(len(lengths)), lengths)
        # Two entries of one place are added: how often the chunk holds the term.
        ones = np.ones(len(terms), dtype=np.uint32)
        counts = sparse.coo_array((ones, (terms, chunks)), shape=(len(of_term), len(lengths))).tocsr()
        counts.sort_indices()
        return Block(list(of_term), counts.indptr.astype(np.int64), counts.indices, counts.data, lengths)


def build(texts: Iterable[Sequence[str]], folder: Path, analysis: Analysis, engine: Engine, processes: int) -> None:
    """Writes the index of the texts of all chunks, in their order.

    An engine's workers invert them, or so many processes of this machine; the index is the same.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    number: defaultdict[str, int] = defaultdict()
    number.default_factory = number.__len__
    holding = np.empty(0, dtype=np.int64)  # how many chunks hold each term
    lengths, most = [np.empty(0, dtype=np.int32)], 1
    (folder / "blocks").mkdir()
    for at, block in enumerate(_inverted(texts, Inverting(analysis), engine, processes)):
        terms = np.fromiter(map(number.__getitem__, block.terms), np.int64)
        holding = np.concatenate([holding, np.zeros(len(number) - len(holding), dtype=np.int64)])
        holding[terms] += np.diff(block.starts)
        lengths.append(block.lengths)
        most = max(most, int(block.counts.max(initial=0)))
        with _block_file(folder, at).open("wb") as file:
            np.savez(file, terms=terms, starts=block.starts, chunks=block.chunks, counts=block.counts)
    starts = np.concatenate([[0], np.cumsum(holding)])
    _merge(folder, [len(of_block) for of_block in lengths[1:]], starts, np.min_scalar_type(most))
    shutil.rmtree(folder / "blocks")
    np.save(folder / "starts.npy", starts)
    np.save(folder / "lengths.npy", np.concatenate(lengths))
    pq.write_table(pa.table({"term": pa.array(list(number), type=pa.large_string())}), folder / "terms.parquet")


def _block_file(folder: Path, number: int) -> Path:
    return folder / "blocks" / f"{number}.npz"


def _inverted(texts: Iterable[Sequence[str]], work: Inverting, engine: Engine, processes: int) -> Iterator[Block]:
    blocks = (some[start : start + _TEXTS_AT_ONCE] for some in texts for start in range(0, len(some), _TEXTS_AT_ONCE))
    first = list(islice(blocks, 2))
    all_blocks = chain(first, blocks)
    if processes == 1 or len(first) < 2 or not isinstance(engine, LocalEngine):
        yield from engine.map(work, all_blocks)
        return
    waiting: deque[Future[Block]] = deque()
    try:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            for block in all_blocks:
                waiting.append(pool.submit(work, block))
                if len(waiting) > processes:  # one more than are worked on, so that few texts are in memory
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise ConfigError(
            f"retriever.threads={processes}: a process that indexes ended early. It lacked memory, or "
            'the script that calls ragauge lacks `if __name__ == "__main__":`. threads=1 starts no process.'
        ) from error


def _merge(folder: Path, sizes: Sequence[int], starts: np.ndarray, count: np.dtype[Any]) -> None:
    """Writes all chunks and counts, by term and within a term by block."""
    shape = (int(starts[-1]),)
    chunks = np.lib.format.open_memmap(folder / "chunks.npy", "w+", np.int32, shape)
    counts = np.lib.format.open_memmap(folder / "counts.npy", "w+", count, shape)
    free, first = starts[:-1].copy(), 0
    for number, size in enumerate(sizes):
        with np.load(_block_file(folder, number)) as block:
            terms, own, holding = block["terms"], block["starts"], np.diff(block["starts"])
            place = np.repeat(free[terms] - own[:-1], holding) + np.arange(own[-1])
            chunks[place] = block["chunks"] + np.int32(first)
            counts[place] = block["counts"]
        free[terms] += holding
        first += size


class Searcher:
    """BM25 over the index of a folder; DataError if it is of another number of chunks."""

    def __init__(self, folder: Path, n_chunks: int, k1: float, b: float, formula: str) -> None:
        import pyarrow.parquet as pq

        if not (folder / "lengths.npy").is_file() or len(lengths := np.load(folder / "lengths.npy")) != n_chunks:
            raise DataError(f"{folder} holds no BM25 index of these {n_chunks} chunks")
        self._starts, self._chunks, self._counts = (
            np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in ("starts", "chunks", "counts")
        )
        self._terms = pq.read_table(folder / "terms.parquet")["term"].combine_chunks()
        self._k1, self._formula = k1, formula
        # What a count is compared with: long chunks need more of a term.
        mean = lengths.mean() if lengths.any() else 1.0
        self._norm = k1 * (1 - b + b * lengths / mean)

    def numbered(self, queries: Sequence[Mapping[str, float]]) -> list[dict[int, float]]:
        """The queries {term: weight} as {term number: weight}, without terms that no chunk holds."""
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = pa.array({term for query in queries for term in query}, type=pa.large_string())
        known = np.flatnonzero(pc.is_in(self._terms, value_set=wanted).to_numpy(zero_copy_only=False))
        number = dict(zip(self._terms.take(known).to_pylist(), known.tolist(), strict=True))
        return [{number[term]: weight for term, weight in query.items() if term in number} for query in queries]

    def __call__(self, queries: Sequence[Mapping[int, float]], depth: int) -> Hits:
        """At most `depth` best hits of every query (by its index), unordered.

        A chunk's score is the sum over the query's terms of weight times `_weights` times count / (count + norm).
        Chunks that hold none of them, or terms of weight 0 alone, are no hits.
        """
        found = [Hits(NO_ROWS, NO_ROWS, np.empty(0))]
        for first, last in pairwise(self._cuts(queries)):
            of_block = self._scores(queries[first:last])
            for query, (start, end) in enumerate(pairwise(of_block.indptr), first):
                scores = of_block.data[start:end]
                best = np.flatnonzero(scores)
                if len(best) > depth:
                    best = best[np.argpartition(scores[best], len(best) - depth)[-depth:]]
                chunks = of_block.indices[start:end][best].astype(np.int64)
                found.append(Hits(np.full(len(best), query), chunks, scores[best]))
        return Hits(*map(np.concatenate, zip(*found, strict=True)))

    def _cuts(self, queries: Sequence[Mapping[int, float]]) -> list[int]:
        """Cuts of the queries into blocks with a bounded number of postings, or a single query."""
        terms = np.fromiter(chain.from_iterable(queries), np.int64)
        before = np.concatenate([[0], np.cumsum(self._starts[terms + 1] - self._starts[terms])])
        ends = before[np.concatenate([[0], np.cumsum([len(query) for query in queries], dtype=np.int64)])]
        cuts = [0]
        while cuts[-1] < len(queries):
            most = ends[cuts[-1]] + _POSTINGS_AT_ONCE
            cuts.append(max(int(np.searchsorted(ends, most, side="right")) - 1, cuts[-1] + 1))
        return cuts

    def _scores(self, queries: Sequence[Mapping[int, float]]) -> Any:
        """Scores, each summed in the order of term numbers, sparse float64 [queries, chunks].

        So chunks of equal words have equal scores, to the last bit.
        """
        from scipy import sparse

        terms = np.array(sorted({term for query in queries for term in query}), dtype=np.int64)
        first, last = self._starts[terms], self._starts[terms + 1]
        parts = [slice(*ends) for ends in zip(first.tolist(), last.tolist(), strict=True)]
        chunks = np.concatenate([NO_ROWS.astype(np.int32), *(self._chunks[part] for part in parts)])
        counts = np.concatenate([np.empty(0), *(self._counts[part] for part in parts)])
        shape = (len(terms), len(self._norm))
        own_starts = np.concatenate([[0], np.cumsum(last - first)])
        held = sparse.csr_array((counts / (counts + self._norm[chunks]), chunks, own_starts), shape=shape)
        asked = [sorted(query.items()) for query in queries]
        columns = np.searchsorted(terms, np.array([term for query in asked for term, _ in query], dtype=np.int64))
        weights = np.array([weight for query in asked for _, weight in query]) * self._weights(last - first)[columns]
        rows = np.concatenate([[0], np.cumsum([len(query) for query in asked])])
        return sparse.csr_array((weights, columns, rows), shape=(len(queries), len(terms))) @ held

    def _weights(self, holding: np.ndarray) -> np.ndarray:
        """Weights, at least 0, of terms by their number of chunks; rare terms weigh more in all three formulas."""
        chunks = len(self._norm)
        if self._formula == "atire":
            return (self._k1 + 1) * np.log(chunks / holding)
        odds = (chunks - holding + 0.5) / (holding + 0.5)
        return np.log1p(odds) if self._formula == "lucene" else np.log(np.maximum(odds, 1))
