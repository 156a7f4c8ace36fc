"""`retriever=none`: the LLM alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from ragauge.contract.frames import Batches
from ragauge.contract.protocols import Tools
from ragauge.retrieval.retrievers._ranking import NO_ROWS, as_transformer, run_frame


@dataclass(frozen=True)
class NoRetrieval:
    """Finds nothing for any topic, so that every context is empty."""

    component: ClassVar[str] = "none"
    uses: ClassVar[frozenset[str]] = frozenset()
    top_k: ClassVar[int] = 0
    reorder_after_cut: ClassVar[bool] = False
    indexes_batches: ClassVar[bool] = True
    search_columns: ClassVar[tuple[str, ...]] = ("docno",)

    def index_identity(self) -> Mapping[str, Any]:
        """The same for all: there is no index."""
        return {"index": "none", "version": 1}

    def build_index(self, chunks: pd.DataFrame | Batches, folder: Path, tools: Tools) -> None:
        """Writes nothing."""

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """A run without rows."""
        return as_transformer("NoRetrieval", lambda topics: run_frame(topics, chunks, NO_ROWS, NO_ROWS))
