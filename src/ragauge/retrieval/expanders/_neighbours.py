"""`expander=neighbours`: every hit with the chunks beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_count
from ragauge.contract.protocols import Tools
from ragauge.retrieval.expanders._merging import merged, placed_hits


@dataclass(frozen=True)
class NeighbourExpander:
    """Every hit with `width` chunks before and behind it in the same document.

    The passage is the document's text from the first of these chunks to the end of the last. With one
    sentence per chunk it is LlamaIndex's sentence window. depth: best hits of a topic that are expanded, all
    others are left out; None is all hits.
    """

    component: ClassVar[str] = "neighbours"
    kind: ClassVar[str] = "neighbours"
    uses: ClassVar[frozenset[str]] = frozenset()

    width: int = 1
    depth: int | None = None

    def __post_init__(self) -> None:
        require_count("expander.width", self.width)
        require_count("expander.depth", self.depth, null="all hits")

    def expand(self, run: pd.DataFrame, chunks: pd.DataFrame, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `passages` with parent, start and end; DataError for a chunk without its parent."""
        hits = placed_hits(run, chunks, docs, self.depth, self.component)
        in_order = chunks.sort_values(["parent", "start", "end"], kind="stable")
        at = pd.Index(in_order["docno"]).get_indexer(pd.Index(hits["docno"]))
        parent = pd.factorize(in_order["parent"])[0]
        low = np.searchsorted(parent, parent, side="left")[at]
        high = np.searchsorted(parent, parent, side="right")[at] - 1
        start, end = in_order["start"].to_numpy(np.int64), in_order["end"].to_numpy(np.int64)
        furthest = hits["end"].to_numpy(np.int64)
        # Chunks may overlap: the one that begins last need not be the one that ends last.
        reach = min(self.width, int((high - low).max(initial=0)))
        for step in range(-reach, reach + 1):
            furthest = np.maximum(furthest, end[np.clip(at + step, low, high)])
        spans = hits.assign(start=start[np.maximum(at - self.width, low)], end=furthest)
        return merged(spans, docs["text"].tolist())
