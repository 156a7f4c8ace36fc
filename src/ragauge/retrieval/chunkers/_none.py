"""No chunking: a document is a chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from ragauge.contract.protocols import Tools
from ragauge.retrieval.chunkers._spans import chunks_frame


@dataclass(frozen=True)
class NoChunker:
    """Every document whole, as the chunk `<docno>%p0`; one without text has none."""

    version: ClassVar[int] = 1
    uses: ClassVar[frozenset[str]] = frozenset()

    def chunk(self, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `chunks`, in document order."""
        return chunks_frame(docs, ((row, 0, len(text)) for row, text in enumerate(docs["text"])))
