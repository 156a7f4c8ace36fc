"""From scored hits to the frame `run`: ties, the cut-off, ranks, and the PyTerrier transformer around it.

Inside the room a hit is three numbers: the row of its topic, the row of its chunk, its score.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ragauge.contract.component import Tools
from ragauge.contract.errors import DataError
from ragauge.contract.extras import installed
from ragauge.contract.retrieval import WithoutIndex
from ragauge.retrieval.ranking import rank_scores, ranks_within
from ragauge.texts.words import has_words

log = logging.getLogger(__name__)

_SPARE = 4  # hits fetched beyond the cut-off, which mostly show that no tie crosses it
_HITS_PER_SEARCH = 4_000_000  # bounds the memory of one search


class Hits(NamedTuple):
    """Hits of several topics, one element per hit: topic row int64, chunk row int64, score float64."""

    topic: np.ndarray
    chunk: np.ndarray
    score: np.ndarray


NO_ROWS = np.empty(0, dtype=np.int64)
Search = Callable[[np.ndarray, int], Hits]


def check_chunks(chunks: pd.DataFrame) -> pd.DataFrame:
    """The chunks, if each has a text and a unique docno; DataError names the first without."""
    for column in ("docno", "text"):
        null = chunks[column].isna().to_numpy()
        if null.any():
            row = int(np.flatnonzero(null)[0])
            raise DataError(f"chunks frame: row {row} (docno={chunks['docno'].iloc[row]!r}): no {column}")
    twice = chunks["docno"].duplicated()
    if twice.any():
        raise DataError(f"chunks frame: docno {chunks['docno'][twice].iloc[0]!r} occurs twice")
    return chunks


def docno_order(chunks: pd.DataFrame) -> np.ndarray:
    """Index of each chunk's docno in the sorted docnos, which breaks ties, int64 [chunks]."""
    # By their UTF-8 bytes, which is the order of their characters.
    docnos = pa.array(chunks["docno"], type=pa.large_string())
    order = np.empty(len(chunks), dtype=np.int64)
    order[pc.sort_indices(docnos).to_numpy()] = np.arange(len(chunks))
    return order


def rows_with_words(topics: pd.DataFrame) -> np.ndarray:
    """Rows of the topics with searchable words, int64."""
    return np.flatnonzero([has_words(query) for query in topics["query"]])


def top_hits(search: Search, topics: np.ndarray, order: np.ndarray, top_k: int, slack: float = 0.0) -> Hits:
    """The best top_k hits of every topic in the order of `topics`, by score, then by docno.

    search(rows, depth): the best `depth` hits of the given topics, in any order; fewer where there are no
    more. A topic whose ties (scores at most `slack` apart) cross the depth is searched deeper, so that
    which of the tied chunks are kept never depends on the engine.
    """
    if len(order) == 0 or len(topics) == 0:
        return Hits(NO_ROWS, NO_ROWS, np.empty(0))
    done: list[Hits] = []
    pending, depth = topics, min(top_k + _SPARE, len(order))
    while len(pending):
        tied: list[np.ndarray] = []
        block = max(1, _HITS_PER_SEARCH // depth)
        for start in range(0, len(pending), block):
            rows = pending[start : start + block]
            hits, rank = sort_hits(search(rows, depth), order)
            crossing = NO_ROWS
            if depth < len(order):
                last, cut = rank == depth - 1, rank == top_k - 1
                full = np.isin(hits.topic[cut], hits.topic[last])
                crossing = hits.topic[last][hits.score[last] >= hits.score[cut][full] - slack]
            keep = (rank < top_k) & ~np.isin(hits.topic, crossing)
            done.append(Hits(*(values[keep] for values in hits)))
            tied.append(crossing)
        pending, depth = np.concatenate(tied), min(4 * depth, len(order))
    hits = Hits(*map(np.concatenate, zip(*done, strict=True)))
    return sort_hits(hits, order)[0]


def sort_hits(hits: Hits, order: np.ndarray) -> tuple[Hits, np.ndarray]:
    """The hits sorted by topic, falling score and docno, with their ranks from 0 within the topic."""
    by = np.lexsort((order[hits.chunk], -hits.score, hits.topic))
    hits = Hits(*(values[by] for values in hits))
    return hits, ranks_within(hits.topic)


def run_frame(
    topics: pd.DataFrame, chunks: pd.DataFrame, topic: np.ndarray, chunk: np.ndarray, **columns: Any
) -> pd.DataFrame:
    """Frame `run` of ordered hits: the topics' columns, docno, score, rank and the given columns.

    Without a column `score` the order alone speaks, through `rank_scores`.
    """
    rank = ranks_within(topic)
    run = topics.drop(columns=["docno", "score", "rank"], errors="ignore").iloc[topic].reset_index(drop=True)
    added: Mapping[str, Any] = {
        "docno": chunks["docno"].iloc[chunk].array,
        "score": rank_scores(rank),
        "rank": rank,
        **columns,
    }
    return run.assign(**added)


def say_cut(who: str, sizes: Sequence[int], top_k: int) -> None:
    """Warns once that hits are left out; `sizes` are the topics' numbers of hits."""
    cut = sum(size > top_k for size in sizes)
    if cut:
        most = f"up to {max(sizes):,} contexts"
        log.warning("%s: %d topics have %s, more than retriever.top_k=%d: the rest is left out", who, cut, most, top_k)


def as_transformer(name: str, rank: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[..., pd.DataFrame]:
    """A PyTerrier transformer of topics [qid, query] that ranks with `rank`.

    It composes with any other. Without PyTerrier, which the base does not bring, it is a plain function. The run is
    sorted by topic in the order given, then by rank; topics without hits have no row.
    """
    if not installed("pyterrier"):
        return lambda topics: rank(topics.reset_index(drop=True))
    transformer: Callable[..., pd.DataFrame] = _ranker()(name, rank)
    return transformer


@cache
def _ranker() -> Any:
    """The class of these transformers, made lazily, since importing PyTerrier is slow."""
    import pyterrier as pt

    class Ranker(pt.Transformer):
        def __init__(self, name: str, rank: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
            super().__init__()
            self.name = name
            self._rank = rank

        def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
            pt.validate.query_frame(inp, extra_columns=["query"])
            return self._rank(inp.reset_index(drop=True))

        def __repr__(self) -> str:
            return self.name

    return Ranker


def rows_by_docno(chunks: pd.DataFrame) -> dict[str, list[int]]:
    """The rows of chunks by docno: of the chunk itself, or of its document's chunks in order."""
    found: dict[str, list[int]] = {}
    for row, parent in enumerate(chunks["parent"]):
        found.setdefault(parent, []).append(row)
    return {**found, **{docno: [row] for row, docno in enumerate(chunks["docno"])}}


@dataclass(frozen=True)
class NoRetrieval(WithoutIndex):
    """Finds nothing for any topic, so that every context is empty."""

    component = "none"
    top_k = 0
    indexes_batches = True
    search_columns = ("docno",)

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """A run without rows."""
        return as_transformer("NoRetrieval", lambda topics: run_frame(topics, chunks, NO_ROWS, NO_ROWS))
