"""Random choices that are equal on every machine and Python version.

Only `random.Random.random()` is used: its sequence is the one that Python promises to keep for a seed, which
`choice`, `shuffle` and `sample` are not.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """A random stream determined by the given keys alone (a seed, a region, a purpose, ...)."""

    def __init__(self, *keys: object) -> None:
        digest = hashlib.sha256("\x1f".join(map(str, keys)).encode()).digest()
        self.random = random.Random(int.from_bytes(digest[:16], "big")).random

    def below(self, n: int) -> int:
        """A uniform random integer from 0 to n - 1."""
        return int(self.random() * n)

    def between(self, low: int, high: int) -> int:
        """A uniform random integer from low to high, inclusive."""
        return low + int(self.random() * (high - low + 1))

    def chance(self, p: float) -> bool:
        """True with probability p."""
        return self.random() < p

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[int(self.random() * len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in random order (Fisher and Yates)."""
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = int(self.random() * (i + 1))
            out[i], out[j] = out[j], out[i]
        return out

    def sample(self, items: Sequence[T], n: int) -> list[T]:
        """n items of different positions; all of them, in random order, if there are fewer."""
        return self.shuffled(items)[:n]
