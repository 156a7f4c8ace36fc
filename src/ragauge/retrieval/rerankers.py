"""Config group `reranker`, a run to another order of its chunks: the candidate hits, and `reranker=none`."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ragauge.contract.checks import require_count
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.retrieval import Reranker


def check_depth(depth: object, top_k: object) -> None:
    """ConfigError unless depth and top_k are counts with top_k <= depth."""
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


@dataclass(frozen=True)
class NoReranker(Reranker):
    """Leaves the run as it is; the stage is left out."""

    component = "none"
    kind = "none"

    def rerank(self, run: pd.DataFrame, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """The run itself."""
        return run
