"""Frame `passages`: the texts of contexts that are no longer those of chunks;
and texts that a recorded or served system brought.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ragauge.contract import frames
from ragauge.contract.errors import DataError
from ragauge.retrieval.ranking import ranks_within


def passages_of(run: pd.DataFrame, chunks: pd.DataFrame) -> pd.DataFrame:
    """The hits by topic and rank with their texts, document (`parent`) and place in it (`start`, `end`).

    DataError where the run names a chunk that is not there.
    """
    there = chunks[["docno", "text", "parent", "start", "end"]]
    found = run[["qid", "rank", "docno", "score"]].merge(there, on="docno", how="left", validate="many_to_one")
    unknown = found["parent"].isna()
    if unknown.any():
        row = found[unknown].iloc[0]
        raise DataError(f"run of qid={row['qid']!r}: chunk docno={row['docno']!r} is not among the chunks")
    return in_rank_order(found.astype({"start": "int64", "end": "int64"}))


def in_rank_order(passages: pd.DataFrame) -> pd.DataFrame:
    """The passages by topic, in order of first occurrence, and by rank, with a new index."""
    topic = pd.factorize(passages["qid"])[0]
    return passages.iloc[np.lexsort((passages["rank"].to_numpy(), topic))].reset_index(drop=True)


def with_texts(passages: pd.DataFrame, texts: Sequence[str]) -> pd.DataFrame:
    """The passages with other texts, without those of white space alone; ranks are 0, 1, 2, … again."""
    found = passages.assign(text=pd.Series(list(texts), index=passages.index, dtype="str"))
    found = found[found["text"].str.strip() != ""].reset_index(drop=True)
    return found.assign(rank=ranks_within(pd.factorize(found["qid"])[0]))


def standing(passages: pd.DataFrame) -> pd.DataFrame:
    """The rows of frame `used_passages` with text in the context, and that text as `seen`.

    `place` is the passage's place among the topic's passages by rank, from 1; the index is new.
    """
    seen = [text[: max(chars, 0)] for text, chars in zip(passages["text"], passages["chars"], strict=True)]
    found = passages.assign(seen=pd.Series(seen, index=passages.index, dtype="str"))
    found = found[found["seen"].str.strip() != ""]
    found = found.sort_values(["qid", "n_tokens", "position"], kind="stable").reset_index(drop=True)
    place = found.groupby("qid", sort=False)["rank"].rank(method="first").astype("int64")
    return found.assign(place=place)


_PASSAGE = re.compile(r"%p[^%]*$")
MARK = "text-"  # begins the docno of a text that nobody has named


def name_of(text: str) -> str:
    """The docno for a text without one; equal texts have equal names in all systems."""
    return MARK + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def document_of(docno: str) -> str:
    """The document's docno of a chunk or passage `<document>%p…`; a document's docno unchanged."""
    return _PASSAGE.sub("", docno)


def with_brought(chunks: pd.DataFrame, texts: pd.DataFrame, who: str) -> pd.DataFrame:
    """The chunks, followed by the texts [docno, text] as chunks of their own documents.

    A docno `<document>%p…` says which document a text is of.

    DataError, which names `who`, for a docno that stands twice or is that of a chunk.
    """
    known = texts["docno"].isin(chunks["docno"]) | texts["docno"].duplicated()
    if known.any():
        docno = texts.loc[known, "docno"].iloc[0]
        raise DataError(f"{who}: docno {docno!r} of a text of its own is that of another text")
    own = pd.DataFrame(
        {
            "docno": texts["docno"].astype("str"),
            "text": texts["text"].astype("str"),
            "parent": texts["docno"].map(document_of).astype("str"),
            "start": 0,
            "end": texts["text"].str.len().astype("int64"),
        }
    ).astype({"start": "int64"})
    return frames.check("chunks", pd.concat([chunks, own], ignore_index=True), who)
