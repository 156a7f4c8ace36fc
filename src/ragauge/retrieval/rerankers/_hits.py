"""The hits that a reranker looks at, one score of two, and `reranker=none`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_count
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.protocols import Tools


def check_depth(depth: object, top_k: object) -> None:
    """ConfigError unless depth and top_k are counts and no more come out than go in."""
    require_count("reranker.depth", depth, note="hits of a topic that are reranked")
    require_count("reranker.top_k", top_k, null="depth")
    if isinstance(top_k, int) and isinstance(depth, int) and top_k > depth:
        raise ConfigError(f"reranker.top_k={top_k}: allowed are 1 to reranker.depth, which is {depth}")


def candidates(run: pd.DataFrame, topics: pd.DataFrame, chunks: pd.DataFrame, depth: int) -> pd.DataFrame:
    """The best `depth` hits of every topic in rank order, with `query` and `text` beside the run's columns.

    DataError where the run names a topic or a chunk that is not there.
    """
    near = run[run["rank"] < depth].drop(columns=["query", "text"], errors="ignore")
    topic = pd.factorize(near["qid"])[0]
    near = near.assign(_topic=topic).sort_values(["_topic", "rank"], kind="stable").drop(columns="_topic")
    found = near.merge(topics[["qid", "query"]], on="qid", how="left", validate="many_to_one").merge(
        chunks[["docno", "text"]], on="docno", how="left", validate="many_to_one"
    )
    for column, key in (("query", "qid"), ("text", "docno")):
        unknown = found[column].isna()
        if unknown.any():
            raise DataError(f"run to be reranked: {key}={found.loc[unknown, key].iloc[0]!r} is not known")
    return found


def fused_scores(qids: pd.Series, first: pd.Series, second: np.ndarray, weight: float) -> np.ndarray:
    """float64 [hits]: weight x the first stage's score + (1 - weight) x the reranker's, normalised.

    Both are normalised within each topic: a score's distance to the topic's lowest over the topic's range, 1 where all
    of a topic are equal. It is CombSUM with min-max, as `fusion=weighted` of retriever=hybrid. Rounded to 12 places, so
    that equal sums are ties.
    """
    parts = [_min_max(qids, first.to_numpy(dtype=float)), _min_max(qids, second.astype(float))]
    return np.asarray(np.round(weight * parts[0] + (1 - weight) * parts[1], 12))


def _min_max(qids: pd.Series, score: np.ndarray) -> np.ndarray:
    topics = pd.Series(score).groupby(qids.to_numpy())
    low, high = topics.transform("min").to_numpy(), topics.transform("max").to_numpy()
    span = high - low
    return np.where(span > 0, (score - low) / np.where(span > 0, span, 1.0), 1.0)


@dataclass(frozen=True)
class NoReranker:
    """Leaves the run as it is; the stage is left out."""

    component: ClassVar[str] = "none"
    kind: ClassVar[str] = "none"
    uses: ClassVar[frozenset[str]] = frozenset()

    def rerank(self, run: pd.DataFrame, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """The run itself."""
        return run
