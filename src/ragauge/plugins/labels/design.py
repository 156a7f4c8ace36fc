"""Draws the topics to label: a sample of fixed size with unequal probabilities.

Sequential Poisson sampling (Ohlsson 1998): every topic has a random number u, and the n topics with the smallest
u / size are drawn. u follows from seed and qid alone, so the sample of a larger n contains that of a smaller one.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd

_DRAWS, _BLOCK = 500, 2_000_000  # simulated samples, and random numbers that are drawn at once


def draw(sizes: pd.Series, n: int, seed: int = 0, salt: str = "") -> pd.DataFrame:
    """Every topic's probability of being among the n drawn, and its place in the drawing order.

    `sizes` are positive numbers by qid, to which probabilities are about proportional. Returns [probability, place]
    with the index of `sizes`; places below n are drawn. `salt` gives other random numbers of the same seed: what sizes
    were learnt from must not depend on the numbers that draw.
    """
    size = sizes.to_numpy(dtype=float) / float(sizes.sum())
    return pd.DataFrame({"probability": inclusion(size, n), "place": places(sizes, seed, salt)}, index=sizes.index)


def places(sizes: pd.Series, seed: int = 0, salt: str = "") -> np.ndarray:
    """int [topics]: the place of every topic in the order of drawing, from 0 (see `draw`)."""
    texts = [f"labels\0{seed}\0{salt}\0{qid}".encode("utf-8", "surrogatepass") for qid in sizes.index]
    whole = [int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) for text in texts]
    place = np.empty(len(sizes), dtype=int)
    ranks = np.array(whole, dtype=np.float64) / sizes.to_numpy(dtype=float)
    place[np.argsort(ranks, kind="stable")] = np.arange(len(sizes))
    return place


def inclusion(size: np.ndarray, n: int) -> np.ndarray:
    """float64 [topics]: each topic's probability of being among the n drawn.

    Topic i is drawn where u_i < size_i T, T being the n-th smallest u / size of the others. The probability is the mean
    of min(1, size_i T) over simulated T, scaled to the sum n: within 1 % of the exact one.
    """
    if n >= len(size):
        return np.ones(len(size))
    rng, found, left = np.random.default_rng(0), np.zeros(len(size)), _DRAWS
    while left:
        block = min(left, max(_BLOCK // len(size), 1))
        ranks = rng.random((block, len(size))) / size
        last, first_out = np.partition(ranks, (n - 1, n), axis=1)[:, n - 1 : n + 1].T[..., None]
        found += np.minimum(size * np.where(ranks <= last, first_out, last), 1).sum(axis=0)
        left -= block
    return np.minimum(found / _DRAWS * (n / (found.sum() / _DRAWS)), 1)
