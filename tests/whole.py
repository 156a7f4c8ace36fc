"""An expander that is a few lines long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from ragauge.contract.component import Tools
from ragauge.contract.retrieval import Expander
from ragauge.retrieval.passages import passages_of, with_texts


@dataclass(frozen=True)
class Whole(Expander):
    """The document of every hit once, at the place of its best chunk, at most `most` of a topic."""

    component: ClassVar[str] = "whole"
    kind: ClassVar[str] = "whole"
    uses: ClassVar[frozenset[str]] = frozenset()

    most: int = 9

    def expand(self, run: pd.DataFrame, chunks: pd.DataFrame, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        hits = passages_of(run, chunks).drop_duplicates(["qid", "parent"]).groupby("qid", sort=False).head(self.most)
        texts = docs.set_index("docno")["text"].loc[hits["parent"]].tolist()
        return with_texts(hits.assign(start=0, end=[len(text) for text in texts]), texts)
