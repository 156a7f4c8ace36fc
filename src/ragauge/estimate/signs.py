"""Sums over topics under random signs: the null distribution of max-t tests and simultaneous bands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

FLIPS = 1999  # random signs behind a p or a band
TOLERANCE = 1e-7  # normalised sums of the same numbers in another order count as equal
_BLOCK = 2_000_000  # signs of one block: bounds the memory


def flipped_sums(values: np.ndarray, n_flips: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Yields float64 blocks [flips, columns], n_flips rows in all: column sums of topics with random signs.

    `values` is float [topics, columns] without NaN. A topic's sign is the same in all columns, so that a row keeps how
    the columns vary together. The signs depend on the seed and the number of topics alone.
    """
    n = len(values)
    rng = np.random.default_rng(seed)
    height = max(1, _BLOCK // max(n, 1))
    total = values.sum(axis=0)
    for start in range(0, n_flips, height):
        rows = min(height, n_flips - start)
        bits = np.unpackbits(np.frombuffer(rng.bytes(-(-rows * n // 8)), dtype=np.uint8))
        yield total - 2 * (bits[: rows * n].reshape(rows, n).astype(float) @ values)


def all_flipped(values: np.ndarray, seed: int = 0) -> np.ndarray:
    """The sums of `flipped_sums` in one array [1,999 flips, columns]."""
    return np.vstack(list(flipped_sums(values, FLIPS, seed)))


def tail_p(drawn: np.ndarray, observed: float) -> float:
    """The share of normalised sums, including the observed one, that are at least the observed one."""
    return float((1 + (drawn >= observed - TOLERANCE).sum()) / (len(drawn) + 1))
