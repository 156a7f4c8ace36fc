"""Config group `compressor`: passages to their relevant parts; here the one that keeps all."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.retrieval import Compressor


@dataclass(frozen=True)
class NoCompressor(Compressor):
    """Leaves the passages as they are; the stage is left out."""

    component = "none"
    kind = "none"

    def compress(self, passages: pd.DataFrame, topics: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """The passages themselves."""
        return passages
