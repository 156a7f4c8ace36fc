"""Texts that a retriever brings along, beside the chunks of the corpus."""

from __future__ import annotations

import hashlib

import pandas as pd

from ragauge.contract import frames
from ragauge.contract.errors import DataError

MARK = "text-"  # begins the docno of a text that nobody has named


def name_of(text: str) -> str:
    """The docno of a text without one: equal texts have equal names, in all systems."""
    return MARK + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def with_brought(chunks: pd.DataFrame, texts: pd.DataFrame, who: str) -> pd.DataFrame:
    """The chunks, and behind them the texts [docno, text] as chunks of documents of their own.

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
            "parent": texts["docno"].astype("str").str.replace(r"%p[^%]*$", "", regex=True),
            "start": 0,
            "end": texts["text"].str.len().astype("int64"),
        }
    ).astype({"start": "int64"})
    return frames.check("chunks", pd.concat([chunks, own], ignore_index=True), who)
