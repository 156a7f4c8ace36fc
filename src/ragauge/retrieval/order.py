"""Config group `order`: the order of passages in a context, and whether it is cut before ordering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ragauge.contract.checks import require_choice
from ragauge.contract.retrieval import ContextOrder


def long_context_order(n: int) -> np.ndarray:
    """The ranks 0..n-1 in reading order, best at both ends.

    Returns int64 [n], a permutation: element i is the rank of the chunk that stands i-th. The worst chunk
    stands in the middle; the best one first for an odd n and last for an even n, as in LangChain's
    LongContextReorder. Source of the idea: Liu et al., Lost in the Middle, TACL 2024.
    """
    ranks = np.arange(n, dtype=np.int64)
    first = (n + 1) % 2
    return np.concatenate([ranks[first::2], ranks[1 - first :: 2][::-1]])


@dataclass(frozen=True)
class Order(ContextOrder):
    """Shared part of the orders: `cut`, see `ragauge.contract.retrieval.ContextOrder`."""

    by_rank = False

    cut: Literal["last", "first"] = "last"

    def __post_init__(self) -> None:
        require_choice("order.cut", self.cut, ("last", "first"))


@dataclass(frozen=True)
class RankOrder(Order):
    """The best passage first; `cut` makes no difference."""

    component = "rank"
    by_rank = True

    def arrange(self, n: int) -> np.ndarray:
        """0..n-1."""
        return np.arange(n, dtype=np.int64)


@dataclass(frozen=True)
class LongContextOrder(Order):
    """The best passages at both ends, the worst in the middle (`long_context_order`)."""

    component = "long_context"

    def arrange(self, n: int) -> np.ndarray:
        """See `long_context_order`."""
        return long_context_order(n)


@dataclass(frozen=True)
class ReverseOrder(Order):
    """The best passage last, next to the question where the prompt ends with it."""

    component = "reverse"

    def arrange(self, n: int) -> np.ndarray:
        """n-1..0."""
        return np.arange(n - 1, -1, -1, dtype=np.int64)
