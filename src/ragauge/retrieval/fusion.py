"""Several ranked lists of a topic as one.

Sources: reciprocal rank fusion, Cormack, Clarke and Büttcher, SIGIR 2009; CombSUM (here `weighted`), CombMNZ
and CombMAX, Fox and Shaw, TREC-2, 1993; inverse square ranks, Mourão, Martins and Magalhães, 2014.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
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


FUSIONS = ("rrf", "weighted", "mnz", "isr", "max")  # in the order of `_fusing`
NORMALISATIONS = ("min_max", "z_score")
Scored = tuple[np.ndarray, np.ndarray, np.ndarray]
_TOPICS_PER_BLOCK = 256


def fuse(
    lists: Sequence[Scored],
    order: np.ndarray,
    n_topics: int,
    top_k: int,
    fusion: str = "rrf",
    normalise: str = "min_max",
    weights: Sequence[float] | None = None,
    constant: float = 60.0,
    threads: int | None = None,
) -> Scored:
    """The best top_k documents of every topic, of several ranked lists of them.

    lists: one triple of a retriever: of every hit the topic (int, rising), the document (int) and the score;
        a topic's hits in rank order, each document once.
    order: int64 [documents], the place of every document among ties. weights: the weight of every list; None is 1 each.
    threads: None is one a processor; changes no result.

    Returns such a triple, in rank order. The score of a document is, over the lists that hold it, by `fusion`
    rrf: the sum of weight / (constant + rank); isr: the sum of weight / rank**2, times the number of these lists (ranks
    from 1); weighted: the sum of weight * value; mnz: this times the number of these lists; max: the highest weight *
    value. A value is the score less the list's lowest, over the list's range (min_max) or its standard deviation
    (z_score); 1 where all scores of the list are equal. The lowest counts as much as a document that was not found.
    Rounded to 12
    places: equal sums are ties.
    """
    from ragauge.retrieval import _fusing  # here, since numba takes its time

    share = tuple(1.0 for _ in lists) if weights is None else tuple(map(float, weights))
    bounds = np.arange(n_topics + 1)
    starts = tuple(np.searchsorted(topic, bounds).astype(np.int64) for topic, _, _ in lists)
    items = tuple(np.ascontiguousarray(item, dtype=np.int64) for _, item, _ in lists)
    scores = tuple(np.ascontiguousarray(score, dtype=np.float64) for _, _, score in lists)
    most = int(sum(np.diff(start) for start in starts).max()) if n_topics and lists else 0  # type: ignore[union-attr]
    if most == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
    item, score = (np.empty((n_topics, min(top_k, most)), dtype=kind) for kind in (np.int64, np.float64))
    found = np.empty(n_topics, dtype=np.int64)
    order = np.ascontiguousarray(order, dtype=np.int64)
    how = FUSIONS.index(fusion), NORMALISATIONS.index(normalise), float(constant)

    def run(first: int) -> None:
        last = min(first + _TOPICS_PER_BLOCK, n_topics)
        given = (items, scores, starts, order, np.array(share), *how)
        _fusing.fuse_topics(first, last, *given, item, score, found)

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        list(pool.map(run, range(0, n_topics, _TOPICS_PER_BLOCK)))
    topic = np.repeat(bounds[:-1], found)
    if len(topic) == item.size:  # every topic is full: nothing is copied
        return topic, item.reshape(-1), score.reshape(-1)
    kept = np.arange(item.shape[1]) < found[:, None]
    return topic, item[kept], score[kept]
