"""A reranker that loses what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.retrieval import Reranker
from ragauge.retrieval.ranking import rank_scores, ranked, ranks_within


@dataclass(frozen=True)
class Dropping(Reranker):
    """Drops the best hits of every topic, or (`drops` 0) turns their order round."""

    component: ClassVar[str] = "dropping"
    kind: ClassVar[str] = "dropping"
    uses: ClassVar[frozenset[str]] = frozenset()

    drops: int = 0

    def rerank(self, run: pd.DataFrame, topics: pd.DataFrame, chunks: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        if self.drops == 0:
            return ranked(run.assign(score=run["rank"].astype(float)))
        kept = run[run["rank"] >= self.drops].reset_index(drop=True)
        rank = ranks_within(pd.factorize(kept["qid"])[0])
        return kept.assign(rank=rank, score=rank_scores(rank))
