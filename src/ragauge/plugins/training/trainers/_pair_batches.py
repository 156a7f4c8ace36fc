"""Batches of pairs of similar length; imported only while training, since it loads torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sentence_transformers.base.sampler import DefaultBatchSampler

_BLOCK = 20  # batches whose pairs are sorted by length together


class ByLength(DefaultBatchSampler):  # type: ignore[misc]
    """Pairs of similar length together, to reduce padding; the batches in random order.

    An epoch's batches follow from seed and number of the epoch alone, so that a training which is continued
    sees those that it would have seen.
    """

    def __init__(self, dataset: Any, batch_size: int, drop_last: bool, **given: Any) -> None:
        super().__init__(dataset, batch_size, drop_last, **given)
        self.lengths = np.array(
            [len(query) + len(text) for query, text in zip(dataset["query"], dataset["text"], strict=True)]
        )

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        yield from batches(self.lengths, self.batch_size, (self.seed, self.epoch))


def batches(lengths: np.ndarray, size: int, seed: tuple[int, int]) -> list[list[int]]:
    """Every row once, in batches of `size`; the last may be smaller."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(lengths))
    found = []
    for first in range(0, len(order), size * _BLOCK):
        block = order[first : first + size * _BLOCK]
        block = block[np.argsort(lengths[block], kind="stable")]
        found += [block[at : at + size].tolist() for at in range(0, len(block), size)]
    return [found[at] for at in generator.permutation(len(found))]
