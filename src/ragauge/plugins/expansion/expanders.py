"""`expander=neighbours,parent,document`: larger passages around the hits, without repeated text."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ragauge.contract import frames
from ragauge.contract.checks import require_count
from ragauge.contract.component import Tokenizer, Tools
from ragauge.contract.errors import DataError
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import Expander
from ragauge.retrieval.passages import passages_of
from ragauge.retrieval.ranking import ranks_within

_BLACK = re.compile(r"\S")


def placed_hits(
    run: pd.DataFrame, chunks: pd.DataFrame, docs: pd.DataFrame, depth: int | None, who: str
) -> pd.DataFrame:
    """The hits by topic and rank, at most `depth` per topic: [qid, rank, docno, score, parent, start, end].

    Two more columns are row numbers: `topic` counts the topics, `doc` is the parent's row in `docs`.
    DataError, which names the expander, where a chunk's parent is not in `docs` or the chunk does not lie
    within the parent's text.
    """
    hits = passages_of(run, chunks).drop(columns="text")
    hits["topic"] = pd.factorize(hits["qid"])[0]
    if depth is not None:
        hits = hits[ranks_within(hits["topic"].to_numpy()) < depth].reset_index(drop=True)
    doc = pd.Index(docs["docno"]).get_indexer(pd.Index(hits["parent"]))
    if (doc < 0).any():
        row = hits.iloc[int(np.argmax(doc < 0))]
        raise DataError(
            f"expander={who}: chunk docno={row['docno']!r} has the parent {row['parent']!r}, which is no "
            "document of the dataset; without parents use expander=none"
        )
    sizes = docs["text"].str.len().to_numpy(dtype=np.int64)
    outside = (hits["start"] < 0) | (hits["end"] < hits["start"]) | (hits["end"] > sizes[doc])
    if outside.any():
        row = hits[outside].iloc[0]
        raise DataError(
            f"expander={who}: chunk docno={row['docno']!r} spans the characters {row['start']} to "
            f"{row['end']} of {row['parent']!r}, which has {sizes[doc[int(np.argmax(outside))]]}"
        )
    return hits.assign(doc=doc)


def merged(hits: pd.DataFrame, texts: Sequence[str]) -> pd.DataFrame:
    """Frame `passages` of the hits' spans [topic, doc, start, end], with `parent`, `start` and `end`.

    Spans of one topic and document that overlap, or have only white space between them, become one passage. It stands
    at the place of its best hit, and has that hit's docno and score. hits: by topic and rank, as `placed_hits` returns
    them; texts: those of the documents.
    """
    if hits.empty:
        return frames.empty("passages").assign(parent=pd.Series(dtype="str"), start=0, end=0)
    topic, doc, start, end = (hits[c].to_numpy(np.int64) for c in ("topic", "doc", "start", "end"))
    order = np.lexsort((end, start, doc, topic))
    topic, doc, start, end = topic[order], doc[order], start[order], end[order]
    opens = np.r_[True, (topic[1:] != topic[:-1]) | (doc[1:] != doc[:-1])]
    # Up to where text is taken so far, document by document: a number that rises over all of them.
    base = np.cumsum(opens) * end.max()
    reach = np.maximum.accumulate(base + end) - base
    for row in np.flatnonzero(~opens[1:] & (start[1:] > reach[:-1])) + 1:
        opens[row] = _BLACK.search(texts[doc[row]], reach[row - 1], start[row]) is not None
    first = np.flatnonzero(opens)
    best = np.minimum.reduceat(order, first)
    place = np.argsort(best)
    found = hits.iloc[best[place]].reset_index(drop=True)
    found["start"], found["end"] = start[first][place], np.maximum.reduceat(end, first)[place]
    found["rank"] = ranks_within(found["topic"].to_numpy())
    spans = zip(found["doc"], found["start"], found["end"], strict=True)
    found["text"] = pd.Series([texts[row][a:b] for row, a, b in spans], dtype="str")
    return found[["qid", "rank", "docno", "text", "score", "parent", "start", "end"]]


_BLOCK_DOCS = 4096  # whose tokens are in memory at a time


@option("expander/parent")
class ParentExpander(Expander):
    """The passage of `tokens` tokens of the document around every hit: small chunks found, large ones read.

    The hit stands in the middle; at an end of the document the passage takes from the other side what is
    missing on this one. Tokens are those of the config's tokenizer, in the document as a whole. A hit that is
    longer by itself stays as it is. Merged passages are longer than `tokens`. depth: best hits of a topic
    that are expanded, all others are left out; None is all hits.
    """

    component = "parent"
    kind = "parent"
    uses = frozenset({"tokenizer"})

    tokens: int = CONF
    depth: int | None = CONF

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


@option("expander/document")
class DocumentExpander(Expander):
    """The whole document of every hit, once, at the place of its best chunk.

    depth: best hits of a topic whose documents are taken, all others are left out; None is all hits.
    """

    component = "document"
    kind = "document"

    depth: int | None = CONF

    def __post_init__(self) -> None:
        require_count("expander.depth", self.depth, null="all hits")

    def expand(self, run: pd.DataFrame, chunks: pd.DataFrame, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `passages` with parent, start and end; DataError for a chunk without its parent."""
        hits = placed_hits(run, chunks, docs, self.depth, self.component)
        texts = docs["text"].tolist()
        sizes = np.array([len(text) for text in texts], dtype=np.int64)
        return merged(hits.assign(start=0, end=sizes[hits["doc"]]), texts)


def _block_of(doc: pd.Series) -> np.ndarray:
    """int64 per row of `doc`, which is sorted: the number of its block of documents."""
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
    sizes = np.array([len(texts[doc]) for doc in docs], dtype=np.int64)
    base = np.cumsum(sizes) - sizes
    # A normaliser may reorder marks: no token begins or ends before the one in front of it.
    laid = np.concatenate([np.maximum.accumulate(at) + b for at, b in zip(found, base, strict=True)])
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


@option("expander/neighbours")
class NeighbourExpander(Expander):
    """Every hit with `width` chunks before and behind it in the same document.

    The passage is the document's text from the first of these chunks to the end of the last. With one
    sentence per chunk it is LlamaIndex's sentence window. depth: best hits of a topic that are expanded, all
    others are left out; None is all hits.
    """

    component = "neighbours"
    kind = "neighbours"

    width: int = CONF
    depth: int | None = CONF

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
