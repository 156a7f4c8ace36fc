"""Fast ranking by an encoder for held-out topics: a sample of topics over a sample of chunks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.measures.rankings import full_name, metric_of, ranking_values
from ragauge.plugins.training.contract import TrainingData
from ragauge.plugins.training.trainers.mining import relevant_chunks

_SHOWN = ("P@1", "R@5", "nDCG@10")
_DEPTH = 100  # ranks that measures look at


@dataclass(frozen=True)
class Validation:
    """Topics, the chunks ranked for them, and the relevant ones.

    name: the value that tells which checkpoint is the best.
    """

    topics: pd.DataFrame
    chunks: pd.DataFrame
    relevant: pd.DataFrame
    measures: tuple[str, ...]
    name: str

    @classmethod
    def of(cls, data: TrainingData, measure: str, n_topics: int, n_chunks: int, seed: int) -> Validation:
        """At most n_topics topics, with their relevant chunks and the run's hits, best ranks first.

        At most n_chunks of these, but every relevant one. DataError where no topic has a relevant chunk.
        """
        relevant = relevant_chunks(data.evidence, data.chunks)
        having = data.topics[data.topics["qid"].isin(set(relevant["qid"]))]
        if having.empty:
            raise DataError("validation: no topic has evidence that stands in a document")
        topics = having.sample(min(n_topics, len(having)), random_state=seed)
        relevant = relevant[relevant["qid"].isin(set(topics["qid"]))]
        hits = data.run[data.run["qid"].isin(set(topics["qid"]))].sort_values("rank", kind="stable")
        wanted = pd.concat([relevant["docno"].drop_duplicates(), hits["docno"]]).drop_duplicates()
        wanted = wanted.head(max(n_chunks, relevant["docno"].nunique()))
        chunks = data.chunks[data.chunks["docno"].isin(set(wanted))]
        shown = tuple(dict.fromkeys([*_SHOWN, full_name(measure)]))
        return cls(topics, chunks, relevant.assign(relevance=1), shown, f"validation_{metric_of(full_name(measure))}")

    def values(self, encode: Callable[[list[str], str], np.ndarray]) -> dict[str, float]:
        """Means of the measures by name. encode: maps texts and their role to unit vectors."""
        queries = encode(self.topics["query"].tolist(), "query")
        passages = encode(self.chunks["text"].tolist(), "passage")
        scores = queries @ passages.T
        depth = min(_DEPTH, len(self.chunks))
        best = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
        run = pd.DataFrame(
            {
                "qid": np.repeat(self.topics["qid"].to_numpy(dtype=object), depth),
                "docno": self.chunks["docno"].to_numpy(dtype=object)[best.ravel()],
                "rank": np.tile(np.arange(depth), len(self.topics)),
            }
        )
        found = ranking_values(run, self.relevant, self.measures)
        means = found.groupby("measure", sort=False)["value"].mean()
        return {f"validation_{name}": float(value) for name, value in means.items()}
