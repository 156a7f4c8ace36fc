"""Several ranked lists of a topic as one.

Sources: reciprocal rank fusion, Cormack, Clarke and Büttcher, SIGIR 2009; CombSUM (here `weighted`), CombMNZ
and CombMAX, Fox and Shaw, TREC-2, 1993; inverse square ranks, Mourão, Martins and Magalhães, 2014.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ragauge.retrieval.ranking import rank_scores, ranks_within


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


FUSIONS = ("rrf", "weighted", "mnz", "isr", "max")
NORMALISATIONS = ("min_max", "z_score")
Scored = tuple[np.ndarray, np.ndarray, np.ndarray]
_TOPICS_AT_ONCE = 256


def fuse(
    lists: Sequence[Scored],
    order: np.ndarray,
    n_topics: int,
    top_k: int,
    fusion: str = "rrf",
    normalise: str = "min_max",
    weights: Sequence[float] | None = None,
    constant: float = 60.0,
) -> Scored:
    """The best top_k documents of every topic, of several ranked lists of them.

    lists: one triple of a retriever: of every hit the topic (int, rising), the document (int) and the score;
        a topic's hits in rank order, each document once.
    order: int64 [documents], the place of every document among ties. weights: the weight of every list; None is 1 each.

    Returns such a triple, in rank order. The score of a document is, over the lists that hold it, by `fusion`
    rrf: the sum of weight / (constant + rank); isr: the sum of weight / rank**2, times the number of these lists (ranks
    from 1); weighted: the sum of weight * value; mnz: this times the number of these lists; max: the highest weight *
    value. A value is the score less the list's lowest, over the list's range (min_max) or its standard deviation
    (z_score); 1 where all scores of the list are equal. The lowest counts as much as a document that was not found.
    Rounded to 12 places: equal sums are ties.
    """
    parts = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))]
    for first in range(0, n_topics, _TOPICS_AT_ONCE):
        hits: list[Scored] = []
        for at, (topic, item, score) in enumerate(lists):
            start, end = np.searchsorted(topic, (first, min(first + _TOPICS_AT_ONCE, n_topics)))
            here = topic[start:end]
            term = _terms(here, score[start:end].astype(float), fusion, normalise, constant)
            hits.append((here, item[start:end], term if weights is None else term * weights[at]))
        if any(len(here) for here, _, _ in hits):
            parts.append(_best(hits, order, top_k, fusion))
    return tuple(map(np.concatenate, zip(*parts, strict=True)))  # type: ignore[return-value]


def _terms(topic: np.ndarray, score: np.ndarray, fusion: str, normalise: str, constant: float) -> np.ndarray:
    """What each hit of a list adds to its document, before the list's weight, float64 [hits]."""
    rank = ranks_within(topic) + 1.0
    if fusion == "rrf":
        return 1 / (constant + rank)
    if fusion == "isr":
        return 1 / rank**2
    if not len(topic):
        return score
    first = np.flatnonzero(rank == 1)
    sizes = np.diff(first, append=len(topic))
    low, high = np.minimum.reduceat(score, first), np.maximum.reduceat(score, first)
    spread = high - low
    if normalise == "z_score":
        mean = np.add.reduceat(score, first) / sizes
        spread = np.sqrt(np.add.reduceat((score - np.repeat(mean, sizes)) ** 2, first) / sizes)
    alike, wide = np.repeat(high <= low, sizes), np.repeat(np.where(high > low, spread, 1.0), sizes)
    return np.where(alike, 1.0, (score - np.repeat(low, sizes)) / wide)


def _best(hits: Sequence[Scored], order: np.ndarray, top_k: int, fusion: str) -> Scored:
    """The top_k documents of each topic from the terms of its hits, best first."""
    topics, items, terms = map(np.concatenate, zip(*hits, strict=True))
    pair, of_pair, count = np.unique(topics * len(order) + items, return_inverse=True, return_counts=True)
    if fusion == "max":
        value = np.full(len(pair), -np.inf)
        np.maximum.at(value, of_pair, terms)
    else:
        value = np.bincount(of_pair, terms)
    if fusion in ("mnz", "isr"):
        value *= count
    value = value.round(12)
    topic, item = np.divmod(pair, len(order))
    ranked = np.lexsort((order[item], -value, topic))
    topic, item, value = topic[ranked], item[ranked], value[ranked]
    kept = ranks_within(topic) < top_k
    return topic[kept], item[kept], value[kept]
