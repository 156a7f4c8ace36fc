"""Frame `passages`: the texts that go into a context, where they are no longer those of chunks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

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
    """The passages topic by topic, as topics come first, and by rank; rows are numbered anew."""
    topic = pd.factorize(passages["qid"])[0]
    return passages.iloc[np.lexsort((passages["rank"].to_numpy(), topic))].reset_index(drop=True)


def with_texts(passages: pd.DataFrame, texts: Sequence[str]) -> pd.DataFrame:
    """The passages with other texts, without those of white space alone; ranks are 0, 1, 2, … again."""
    found = passages.assign(text=pd.Series(list(texts), index=passages.index, dtype="str"))
    found = found[found["text"].str.strip() != ""].reset_index(drop=True)
    return found.assign(rank=ranks_within(pd.factorize(found["qid"])[0]))
