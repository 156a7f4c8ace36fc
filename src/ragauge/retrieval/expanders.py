"""Config group `expander`: hits to larger passages around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from ragauge.contract.component import Tools
from ragauge.retrieval.passages import passages_of


@dataclass(frozen=True)
class NoExpander:
    """Leaves the chunks as they are; the stage is left out."""

    component: ClassVar[str] = "none"
    kind: ClassVar[str] = "none"
    uses: ClassVar[frozenset[str]] = frozenset()

    def expand(self, run: pd.DataFrame, chunks: pd.DataFrame, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """The texts of the hits."""
        return passages_of(run, chunks)
