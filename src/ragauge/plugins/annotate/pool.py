"""The pool: the first passages of several retrievers, each once per topic, with its ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd


@dataclass(frozen=True)
class PooledPassage:
    """A passage of a topic's pool.

    passage: docno of the chunk; docno: that of its document; start: its first character there. ranks: {retriever: rank
    from 1} of those that found it within the depth.
    """

    qid: str
    passage: str
    docno: str
    start: int
    text: str
    ranks: Mapping[str, int] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        """The best of its ranks."""
        return min(self.ranks.values())


def pooled(
    runs: Mapping[str, pd.DataFrame], chunks: pd.DataFrame, qids: Sequence[str], depth: int
) -> dict[str, list[PooledPassage]]:
    """{qid: its pool by rank, then docno} from the retrievers' frames `run` (rank from 0), for these topics.

    chunks: frame `chunks`, which holds every passage that was found. A topic without hits has an empty pool.
    """
    ranks: dict[tuple[str, str], dict[str, int]] = {}
    wanted = set(qids)
    for name, run in runs.items():
        top = run[(run["rank"] < depth) & run["qid"].isin(wanted)]
        for qid, docno, rank in zip(top["qid"], top["docno"], top["rank"], strict=True):
            ranks.setdefault((str(qid), str(docno)), {})[name] = int(rank) + 1
    found = {docno for _, docno in ranks}
    rows = chunks[chunks["docno"].isin(found)]
    of = {row[0]: row[1:] for row in zip(*(rows[c] for c in ("docno", "parent", "start", "text")), strict=True)}
    pools: dict[str, list[PooledPassage]] = {qid: [] for qid in qids}
    for (qid, docno), of_passage in ranks.items():
        parent, start, text = of[docno]
        pools[qid].append(PooledPassage(qid, docno, str(parent), int(start), str(text), of_passage))
    return {qid: sorted(pool, key=lambda one: (one.rank, one.passage)) for qid, pool in pools.items()}
