"""The PyTerrier side of a retriever; imports PyTerrier, so it is imported late."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pyterrier as pt


class Ranker(pt.Transformer):
    """Topics [qid, query] to a run, by a function; composes with any PyTerrier transformer."""

    def __init__(self, name: str, rank: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
        super().__init__()
        self.name = name
        self._rank = rank

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Frame `run`: sorted by topic in the order given, then by rank; topics without hits have no row."""
        pt.validate.query_frame(inp, extra_columns=["query"])
        return self._rank(inp.reset_index(drop=True))

    def __repr__(self) -> str:
        return self.name
