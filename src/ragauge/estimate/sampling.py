"""Chooses a sample of topics to judge."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Literal

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_choice
from ragauge.contract.errors import ConfigError, DataError


def choose_topics(
    predicted_p5: pd.Series,
    n: int,
    strata: int = 3,
    min_per_stratum: int = 20,
    seed: int = 0,
    design: Literal["uniform", "neyman"] = "uniform",
) -> pd.DataFrame:
    """The topics to judge: [qid, stratum, judged], one row per topic, sorted by qid.

    `predicted_p5` is P(5) indexed by qid; a topic that occurs several times (once a retriever) counts with
    its mean, so that every retriever gets the same topics. `uniform`, the recommended design, draws n topics
    at random, whatever their P(5). `neyman` makes `strata` strata of equal size by P(5). From stratum s it draws a
    number in proportion to N_s * sqrt(mean p(1-p)), the spread that is left once P(5) is known, but at least
    min_per_stratum (Neyman 1934). With fewer than strata * min_per_stratum topics to judge it draws as `uniform` does.
    All topics are judged where there are no more than n.

    Samples of one seed nest: every topic has a place in a random order that follows from the seed and its
    qid alone, and the first topics are drawn. So a uniform sample of 200 contains that of 100, also where
    topics are added to or left out of the data set. Samples by `neyman` nest where P(5) is the same and both have at
    least strata * min_per_stratum topics, or both fewer. The reason: the first topics of every stratum are drawn, and
    no stratum gets fewer as n grows. Across that boundary most topics are the same, not all.

    Raises ConfigError for n, strata, min_per_stratum or design out of range, DataError for a p outside
    [0, 1].
    """
    require_choice("design", design, ("neyman", "uniform"))
    if n < 2 or strata < 1 or min_per_stratum < 2:
        raise ConfigError(
            f"n={n}, strata={strata}, min_per_stratum={min_per_stratum}; "
            "allowed are n >= 2, strata >= 1 and min_per_stratum >= 2"
        )
    p = predicted_p5.to_numpy(dtype=float)
    outside = ~((p >= 0) & (p <= 1))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise DataError(f"predicted P(5) of qid={predicted_p5.index[row]!r} is {p[row]}; allowed is 0..1")
    by_topic = pd.DataFrame({"p": p, "spread": p * (1 - p)}, index=predicted_p5.index).groupby(level=0).mean()
    n_topics = len(by_topic)
    n = min(n, n_topics)
    strata = 1 if design == "uniform" or n < strata * min_per_stratum else strata
    rank = np.empty(n_topics, dtype=int)
    rank[np.argsort(by_topic["p"].to_numpy(), kind="stable")] = np.arange(n_topics)
    stratum = rank * strata // max(n_topics, 1)
    sizes = np.bincount(stratum, minlength=strata)
    spread = np.sqrt(np.bincount(stratum, by_topic["spread"], minlength=strata) / np.maximum(sizes, 1))
    take = _allocate(sizes, sizes * spread, n, min(n, min_per_stratum))
    order = random_order(by_topic.index, seed)
    judged = np.zeros(n_topics, dtype=bool)
    for s in range(strata):
        judged[order[stratum[order] == s][: take[s]]] = True
    return pd.DataFrame({"qid": by_topic.index.to_numpy(), "stratum": stratum, "judged": judged})


def random_order(qids: Iterable[object], seed: int) -> np.ndarray:
    """Topics in the order of a hash of seed and qid, random for every seed, int [topics]."""
    texts = [f"{seed}\0{qid}".encode("utf-8", "surrogatepass") for qid in qids]
    return np.argsort([hashlib.blake2b(text, digest_size=16).hexdigest() for text in texts], kind="stable")


def _allocate(sizes: np.ndarray, weights: np.ndarray, n: int, least: int) -> np.ndarray:
    """Allocation of n to strata with the least sum of weights^2 / n_s, int [strata].

    n_s is from `least` to the stratum's size.

    One topic at a time to where it lowers the sum most, which is exact for whole numbers (Wright 2012), and
    takes no topic away as n grows.
    """
    weights = weights if weights.sum() > 0 else sizes.astype(float)
    take = np.minimum(sizes, least)
    for _ in range(n - take.sum()):
        gain = np.where(take < sizes, weights**2 / (take * (take + 1.0)), -1.0)
        take[gain.argmax()] += 1
    return take
