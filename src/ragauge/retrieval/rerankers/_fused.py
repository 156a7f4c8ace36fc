"""A reranker's scores and those of the run that it reranks, as one score."""

from __future__ import annotations

import numpy as np
import pandas as pd


def fused_scores(qids: pd.Series, first: pd.Series, second: np.ndarray, weight: float) -> np.ndarray:
    """float64 [hits]: weight x the first stage's score + (1 - weight) x the reranker's, normalised.

    Both are normalised within each topic: a score's distance to the topic's lowest over the topic's range, 1
    where all of a topic are equal (CombSUM with min-max, as `fusion=weighted` of retriever=hybrid). Rounded
    to 12 places, so that equal sums are ties.
    """
    parts = [_min_max(qids, first.to_numpy(dtype=float)), _min_max(qids, second.astype(float))]
    return np.asarray(np.round(weight * parts[0] + (1 - weight) * parts[1], 12))


def _min_max(qids: pd.Series, score: np.ndarray) -> np.ndarray:
    topics = pd.Series(score).groupby(qids.to_numpy())
    low, high = topics.transform("min").to_numpy(), topics.transform("max").to_numpy()
    span = high - low
    return np.where(span > 0, (score - low) / np.where(span > 0, span, 1.0), 1.0)
