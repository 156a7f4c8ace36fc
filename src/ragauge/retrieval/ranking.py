"""Ranks and ties for makers of a frame `run`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragauge.contract import frames
from ragauge.contract.errors import DataError


def ranks_within(topic: np.ndarray) -> np.ndarray:
    """Index of each element, from 0, in its block of equal neighbours, int64."""
    place = np.arange(len(topic))
    starts = np.append(True, topic[1:] != topic[:-1])[: len(topic)]
    return place - np.maximum.accumulate(np.where(starts, place, 0))


def rank_scores(rank: np.ndarray) -> np.ndarray:
    """Scores 1 / (rank + 1) for a run without scores, in the order of ranks."""
    return 1.0 / (rank + 1)


def ranked(run: pd.DataFrame, top_k: int | None = None) -> pd.DataFrame:
    """The run with ranks from 0 by falling score, ties by docno; topics stay in order.

    run: [qid, docno, score, …]; a column rank is replaced. top_k keeps the best of every topic.
    """
    topic = pd.factorize(run["qid"])[0]
    docno = pd.factorize(run["docno"], sort=True)[0]
    by = np.lexsort((docno, -run["score"].to_numpy(dtype=float), topic))
    rank = ranks_within(topic[by])
    found = run.iloc[by].assign(rank=rank)
    return (found if top_k is None else found[rank < top_k]).reset_index(drop=True)


def check_reranked(run: pd.DataFrame, reranked: pd.DataFrame, who: str) -> pd.DataFrame:
    """The reranked run, if its pairs of qid and docno are all in the run.

    DataError, which names `who`, for another pair, a pair that occurs twice, a score that is no finite number, and
    ranks that are not 0, 1, 2, … in the order of the scores.
    """
    frames.check("run", reranked, who)
    keys = ["qid", "docno"]
    known = pd.MultiIndex.from_frame(run[keys])
    foreign = ~pd.MultiIndex.from_frame(reranked[keys]).isin(known)
    if foreign.any():
        row = reranked.loc[foreign, keys].iloc[0]
        raise DataError(f"{who}: qid={row['qid']!r}, docno={row['docno']!r} is not in the run to be reranked")
    by_rank = reranked.sort_values(["qid", "rank"], kind="stable")
    qids, ranks = by_rank["qid"].to_numpy(), by_rank["rank"].to_numpy()
    scores = by_rank["score"].to_numpy(dtype=float)
    wrong = ranks != ranks_within(qids)
    rises = np.append(False, (scores[1:] > scores[:-1]) & (qids[1:] == qids[:-1]))[: len(scores)]
    for bad, what in ((wrong, "ranks must be 0, 1, 2, …"), (rises, "a lower rank needs a higher score")):
        if bad.any():
            row = by_rank.loc[bad].iloc[0]
            raise DataError(
                f"{who}: qid={row['qid']!r}, docno={row['docno']!r}, rank {row['rank']}: {what} in every "
                "topic; ragauge.retrieval.ranking.ranked makes them so"
            )
    return reranked
