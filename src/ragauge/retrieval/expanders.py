"""Config group `expander`: hits to larger passages around them."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.retrieval import Expander
from ragauge.retrieval.passages import passages_of


@dataclass(frozen=True)
class NoExpander(Expander):
    """Leaves the chunks as they are; the stage is left out."""

    component = "none"
    kind = "none"

    def expand(self, run: pd.DataFrame, chunks: pd.DataFrame, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """The texts of the hits."""
        return passages_of(run, chunks)
