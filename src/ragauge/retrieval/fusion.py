"""Several ranked lists of a topic as one.

Source of reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ragauge.retrieval.ranking import rank_scores


def reciprocal_rank_fusion(
    lists: pd.DataFrame, by: Sequence[str] = ("qid", "docno"), constant: float = 60.0
) -> pd.Series:
    """The score of every pair: the sum over lists of 1 / (constant + rank + 1), indexed by the pair.

    lists: the columns `by` (topic, then document) and rank (from 0), a row for every document of every list.
    Pairs come in the order in which they are first seen. Rounded to 12 places, since a sum's last digit
    depends on the order of its terms: equal sums are then ties.
    """
    terms = lists[list(by)].assign(score=1.0 / (constant + lists["rank"].to_numpy() + 1))
    return terms.groupby(list(by), sort=False)["score"].sum().round(12)


def first_seen(lists: pd.DataFrame, by: Sequence[str] = ("qid", "docno")) -> pd.Series:
    """The score of every pair, all of the first list before the new ones of the second, and so on.

    1 / (rank + 1) of the united list, indexed by the pair; the lists of a topic stand one after the other,
    each in rank order.
    """
    pairs = lists[list(by)].drop_duplicates()
    place = pairs.groupby(by[0], sort=False).cumcount().to_numpy()
    return pd.Series(rank_scores(place), index=pd.MultiIndex.from_frame(pairs), name="score")
