"""Frame `passages`: the texts that go into a context, where they are no longer those of chunks."""

from __future__ import annotations

import pandas as pd

from ragauge.contract.errors import DataError


def passages_of(run: pd.DataFrame, chunks: pd.DataFrame) -> pd.DataFrame:
    """The hits by topic and rank with their texts, document (`parent`) and place in it (`start`, `end`).

    DataError where the run names a chunk that is not there.
    """
    there = chunks[["docno", "text", "parent", "start", "end"]]
    found = run[["qid", "rank", "docno", "score"]].merge(
        there, on="docno", how="left", validate="many_to_one"
    )
    unknown = found["parent"].isna()
    if unknown.any():
        row = found[unknown].iloc[0]
        raise DataError(f"run of qid={row['qid']!r}: chunk docno={row['docno']!r} is not among the chunks")
    topic = pd.factorize(found["qid"])[0]
    return (
        found.assign(_topic=topic)
        .sort_values(["_topic", "rank"], kind="stable")
        .drop(columns="_topic")
        .astype({"start": "int64", "end": "int64"})
        .reset_index(drop=True)
    )
