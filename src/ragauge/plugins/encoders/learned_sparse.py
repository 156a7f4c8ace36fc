"""`retriever=learned_sparse`: term weights by a model such as SPLADE, and their inverted index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from ragauge.contract.component import Tools
from ragauge.contract.frames import Batches
from ragauge.contract.option import option
from ragauge.plugins.encoders._encoder import EncoderRetriever, Kind, compares_by_cosine
from ragauge.retrieval.retrievers.ranking import (
    Hits,
    as_transformer,
    check_chunks,
    docno_order,
    rows_with_words,
    run_frame,
    top_hits,
)

# Beyond this a sum of products is float noise: chunks of equal text score equally, and docno decides.
_DECIMALS = 12


@option("retriever/learned_sparse")
class LearnedSparse(EncoderRetriever):
    """The top_k chunks of highest dot product of weighted terms; `score` is the product, in float64.

    A chunk that shares no term with the question is no hit. Weights are those of a `SparseEncoder` of
    sentence-transformers, at unit length where the model compares by cosine. All chunks are compared. With long=max a
    term has its highest weight in any window of the chunk, as the model takes the highest over the tokens of a text.
    Source: Formal, Piwowarski and Clinchant, SPLADE, SIGIR 2021.
    """

    component = "learned_sparse"
    kind_of_model: ClassVar[Kind] = "SparseEncoder"
    rows_of_record: ClassVar[int] = 128

    def united(self, windows: list[np.ndarray]) -> np.ndarray:
        """The highest weight of each term, at unit length where the model compares by cosine."""
        together = np.concatenate(windows)
        together = together[np.lexsort((-together[:, 1], together[:, 0]))]
        found = together[np.flatnonzero(np.diff(together[:, 0], prepend=-1))]
        if len(found) and compares_by_cosine(self._folder):
            found[:, 1] /= np.linalg.norm(found[:, 1])
        return found

    def build_index(self, chunks: pd.DataFrame | Batches, folder: Path, tools: Tools) -> None:
        """Writes the chunks and weights of every term."""
        if isinstance(chunks, pd.DataFrame):
            check_chunks(chunks)
        of_chunks = [array for arrays in self.arrays_of_chunks(chunks, tools) for array in arrays]
        ends = np.cumsum([0, *(len(array) for array in of_chunks)])
        terms = np.concatenate(of_chunks) if of_chunks else np.empty((0, 2), dtype=np.float32)
        n_terms = int(terms[:, 0].max()) + 1 if len(terms) else 1
        by_chunk = csr_array((terms[:, 1], terms[:, 0].astype(np.int32), ends), shape=(len(of_chunks), n_terms))
        by_term = by_chunk.T.tocsr()
        for name, values in (("starts", by_term.indptr), ("chunks", by_term.indices), ("weights", by_term.data)):
            np.save(folder / f"{name}.npy", values)

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """Maps topics to the chunks that share terms with them; breaks ties by docno, also at the cut-off."""
        starts = np.load(folder / "starts.npy")
        postings, weights = (np.load(folder / f"{name}.npy") for name in ("chunks", "weights"))
        order = docno_order(chunks)

        def scores(terms: np.ndarray) -> np.ndarray:
            """float64 [chunks]: summed term by term, so that chunks of one text have equal sums."""
            found = np.zeros(len(chunks))
            for place, weight in terms[terms[:, 0] < len(starts) - 1].tolist():
                of_term = slice(starts[int(place)], starts[int(place) + 1])
                found[postings[of_term]] += weight * weights[of_term].astype(np.float64)
            return found.round(_DECIMALS)

        def rank(topics: pd.DataFrame) -> pd.DataFrame:
            asked = rows_with_words(topics)
            arrays = self.arrays(topics["query"].iloc[asked].tolist(), "query", tools)
            terms = dict(zip(asked.tolist(), arrays, strict=True))

            def search(rows: np.ndarray, depth: int) -> Hits:
                found = []
                for row in rows.tolist():
                    score = scores(terms[row])
                    hit = np.flatnonzero(score > 0)
                    if len(hit) > depth:
                        hit = hit[np.argpartition(-score[hit], depth - 1)[:depth]]
                    found.append(Hits(np.full(len(hit), row), hit, score[hit]))
                return Hits(*map(np.concatenate, zip(*found, strict=True)))

            hits = top_hits(search, asked, order, self.top_k)
            return run_frame(topics, chunks, hits.topic, hits.chunk, score=hits.score)

        return as_transformer("LearnedSparse", rank)
