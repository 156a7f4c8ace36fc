"""Batches in which no question's negative is relevant to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sentence_transformers.base.sampler import DefaultBatchSampler


@dataclass(frozen=True)
class Row:
    """One example: its question, its passages, and all passages relevant to the question."""

    question: str
    passages: frozenset[str]
    relevant: frozenset[str]


class RelevanceBatches(DefaultBatchSampler):  # type: ignore[misc]
    """Rows by batch, reshuffled every epoch.

    In-batch losses take every passage of a batch for irrelevant to every question but its own. So no two rows
    of a batch have the same question, and none brings a passage that is relevant to the other's. A row goes
    into the first batch with room where this holds; one that fits nowhere waits for another epoch, which is
    rare. There are as many batches in every epoch.
    """

    def __init__(self, dataset: Any, rows: Sequence[Row], **given: Any) -> None:
        super().__init__(dataset, **given)
        self.rows = rows
        most = max(Counter(row.question for row in rows).values(), default=0)
        self.n = max(most, -(-len(rows) // self.batch_size))

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[list[int]]:
        generator = np.random.default_rng([self.seed, self.epoch])
        yield from batches(self.rows, self.batch_size, self.n, generator)


def batches(rows: Sequence[Row], size: int, n: int, generator: np.random.Generator) -> list[list[int]]:
    """n nonempty batches of at most `size` row numbers, by the rule of `RelevanceBatches`."""
    members: list[list[int]] = [[] for _ in range(n)]
    questions: list[set[str]] = [set() for _ in range(n)]
    passages: list[set[str]] = [set() for _ in range(n)]
    relevant: list[set[str]] = [set() for _ in range(n)]
    first = 0  # batches before it are full
    for at in generator.permutation(len(rows)).tolist():
        row = rows[at]
        while first < n and len(members[first]) == size:
            first += 1
        for batch in range(first, n):
            if (
                len(members[batch]) < size
                and row.question not in questions[batch]
                and relevant[batch].isdisjoint(row.passages)
                and passages[batch].isdisjoint(row.relevant)
            ):
                members[batch].append(at)
                questions[batch].add(row.question)
                passages[batch] |= row.passages
                relevant[batch] |= row.relevant
                break
    return [batch or [int(generator.integers(len(rows)))] for batch in members]
