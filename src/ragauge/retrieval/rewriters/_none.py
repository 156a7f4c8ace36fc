"""`rewriter=none`: the question itself is searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import pandas as pd

from ragauge.contract.protocols import Tools
from ragauge.retrieval.searching import queries_frame


@dataclass(frozen=True)
class NoRewriter:
    """Leaves the questions as they are; the stage is left out."""

    component: ClassVar[str] = "none"
    kind: ClassVar[str] = "none"
    uses: ClassVar[frozenset[str]] = frozenset()
    feedback: ClassVar[bool] = False
    union: ClassVar[Literal["rrf"]] = "rrf"
    rrf_constant: ClassVar[float] = 60

    def rewrite(
        self, topics: pd.DataFrame, run: pd.DataFrame | None, chunks: pd.DataFrame | None, tools: Tools
    ) -> pd.DataFrame:
        """The questions, each one search."""
        return queries_frame(
            {"qid": qid, "query": query, "search": 0, "origin": "question"}
            for qid, query in zip(topics["qid"], topics["query"], strict=True)
        )
