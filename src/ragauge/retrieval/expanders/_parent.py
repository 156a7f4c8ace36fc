"""`expander=parent` and `expander=document`: the passage around a hit, or the whole document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_count
from ragauge.contract.protocols import Tokenizer, Tools
from ragauge.retrieval.expanders._merging import merged, placed_hits

_BLOCK_DOCS = 4096  # whose tokens are in memory at a time


@dataclass(frozen=True)
class ParentExpander:
    """The passage of `tokens` tokens of the document around every hit: small chunks found, large ones read.

    The hit stands in the middle; at an end of the document the passage takes from the other side what is
    missing on this one. Tokens are those of the config's tokenizer, in the document as a whole. A hit that is
    longer by itself stays as it is. Merged passages are longer than `tokens`. depth: best hits of a topic
    that are expanded, all others are left out; None is all hits.
    """

    component: ClassVar[str] = "parent"
    kind: ClassVar[str] = "parent"
    uses: ClassVar[frozenset[str]] = frozenset({"tokenizer"})

    tokens: int = 512
    depth: int | None = None

    def __post_init__(self) -> None:
        require_count("expander.tokens", self.tokens)
        require_count("expander.depth", self.depth, null="all hits")

    def expand(self, run: pd.DataFrame, chunks: pd.DataFrame, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `passages` with parent, start and end; DataError for a chunk without its parent."""
        hits = placed_hits(run, chunks, docs, self.depth, self.component)
        texts = docs["text"].tolist()
        # A chunk is looked at once, however many topics it is a hit of.
        distinct = hits[["doc", "start", "end"]].drop_duplicates().sort_values("doc", kind="stable")
        wide = [
            windows(block, texts, tools.tokenizer, self.tokens)
            for _, block in distinct.groupby(_block_of(distinct["doc"]), sort=False)
        ]
        if wide:
            # The index of a window is the row of a hit that it belongs to.
            around = distinct.assign(first=pd.concat(wide)["start"], past=pd.concat(wide)["end"])
            hits = hits.merge(around, on=["doc", "start", "end"], how="left", validate="many_to_one")
            hits["start"], hits["end"] = hits["first"], hits["past"]
        return merged(hits, texts)


@dataclass(frozen=True)
class DocumentExpander:
    """The whole document of every hit, once, at the place of its best chunk.

    depth: best hits of a topic whose documents are taken, all others are left out; None is all hits.
    """

    component: ClassVar[str] = "document"
    kind: ClassVar[str] = "document"
    uses: ClassVar[frozenset[str]] = frozenset()

    depth: int | None = None

    def __post_init__(self) -> None:
        require_count("expander.depth", self.depth, null="all hits")

    def expand(self, run: pd.DataFrame, chunks: pd.DataFrame, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `passages` with parent, start and end; DataError for a chunk without its parent."""
        hits = placed_hits(run, chunks, docs, self.depth, self.component)
        texts = docs["text"].tolist()
        sizes = np.array([len(text) for text in texts], dtype=np.int64)
        return merged(hits.assign(start=0, end=sizes[hits["doc"]]), texts)


def _block_of(doc: pd.Series) -> np.ndarray:
    """int64 per row of `doc`, which is sorted: the number of the block of documents that it belongs to."""
    return pd.factorize(doc)[0] // _BLOCK_DOCS


def windows(spans: pd.DataFrame, texts: list[str], tokenizer: Tokenizer, tokens: int) -> pd.DataFrame:
    """[start, end] of the window of `tokens` tokens around every span [doc, start, end], sorted by doc.

    Trimmed of white space, and never smaller than the span.
    """
    which, docs = pd.factorize(spans["doc"])
    start, end = spans["start"].to_numpy(np.int64), spans["end"].to_numpy(np.int64)
    found = tokenizer.offsets([texts[doc] for doc in docs])
    count = np.array([len(at) for at in found], dtype=np.int64)
    head = np.cumsum(count) - count  # where the tokens of a document begin
    # The documents one behind the other, so that one search serves them all.
    sizes = np.array([len(texts[doc]) + 1 for doc in docs], dtype=np.int64)
    base = np.cumsum(sizes) - sizes
    # A normaliser may reorder marks: no token begins or ends before the one in front of it.
    laid = np.concatenate([np.maximum.accumulate(at, axis=0) + b for at, b in zip(found, base, strict=True)])
    own_head, own_count = head[which], count[which]
    first = np.searchsorted(laid[:, 1], base[which] + start, side="right") - own_head
    past = np.searchsorted(laid[:, 0], base[which] + end, side="left") - own_head
    extra = np.maximum(tokens - (past - first), 0)
    size = (past - first) + extra
    low = np.clip(first - extra // 2, 0, np.maximum(own_count - size, 0))
    high = np.minimum(low + size, own_count)
    # In a document without a token there is nothing to widen a span with.
    some = high > low
    wide_start, wide_end = start.copy(), end.copy()
    here = own_head[some]
    wide_start[some] = laid[here + low[some], 0] - base[which[some]]
    wide_end[some] = laid[here + high[some] - 1, 1] - base[which[some]]
    wide_start, wide_end = np.minimum(wide_start, start), np.maximum(wide_end, end)
    for row, doc in enumerate(spans["doc"]):
        before, behind = texts[doc][wide_start[row] : start[row]], texts[doc][end[row] : wide_end[row]]
        wide_start[row] += len(before) - len(before.lstrip())
        wide_end[row] -= len(behind) - len(behind.rstrip())
    return pd.DataFrame({"start": wide_start, "end": wide_end}, index=spans.index)
