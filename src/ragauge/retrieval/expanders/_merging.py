"""What all expanders share: hits with their place in the document, and passages that hold no text twice."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ragauge.contract import frames
from ragauge.contract.errors import DataError
from ragauge.retrieval.passages import passages_of
from ragauge.retrieval.ranking import ranks_within

_BLACK = re.compile(r"\S")


def placed_hits(
    run: pd.DataFrame, chunks: pd.DataFrame, docs: pd.DataFrame, depth: int | None, who: str
) -> pd.DataFrame:
    """The hits by topic and rank, at most `depth` of a topic: [qid, rank, docno, score, parent, start, end].

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

    Spans of one topic and document that overlap, or between which stands nothing but white space, become one
    passage at the place of the best hit in it, whose docno and score it has. hits: by topic and rank, as
    `placed_hits` returns them; texts: those of the documents.
    """
    if hits.empty:
        return frames.empty("passages").assign(parent=pd.Series(dtype="str"), start=0, end=0)
    topic, doc, start, end = (hits[c].to_numpy(np.int64) for c in ("topic", "doc", "start", "end"))
    order = np.lexsort((end, start, doc, topic))
    topic, doc, start, end = topic[order], doc[order], start[order], end[order]
    opens = np.r_[True, (topic[1:] != topic[:-1]) | (doc[1:] != doc[:-1])]
    # Up to where text is taken so far, document by document: a number that rises over all of them.
    base = (np.cumsum(opens) - 1) * (end.max() + 1)
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
