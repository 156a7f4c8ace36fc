"""Config group `compressor`: passages to their relevant parts; here the one that keeps all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from ragauge.contract.component import Tools


@dataclass(frozen=True)
class NoCompressor:
    """Leaves the passages as they are; the stage is left out."""

    component: ClassVar[str] = "none"
    kind: ClassVar[str] = "none"
    uses: ClassVar[frozenset[str]] = frozenset()

    def compress(self, passages: pd.DataFrame, topics: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """The passages themselves."""
        return passages
