"""Long-context reorder: the best chunks at the ends of a context, the worst in its middle."""

from __future__ import annotations

import numpy as np


def long_context_order(n: int) -> np.ndarray:
    """The ranks 0..n-1 in the order in which a reader meets them, best at both ends.

    Returns int64 [n], a permutation: element i is the rank of the chunk that stands i-th. The worst chunk
    stands in the middle; the best one first for an odd n and last for an even n, as in LangChain's
    LongContextReorder. Source of the idea: Liu et al., Lost in the Middle, TACL 2024.
    """
    ranks = np.arange(n, dtype=np.int64)
    first = (n + 1) % 2
    return np.concatenate([ranks[first::2], ranks[1 - first :: 2][::-1]])
