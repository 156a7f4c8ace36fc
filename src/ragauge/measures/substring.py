"""The IR score's default match: the longest common substring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ragauge.measures._batches import (
    Batch,
    character_batch,
    check_threads,
    fold_contexts,
    kernels,
    score_batches,
)
from ragauge.parts import runtime


@dataclass(frozen=True)
class Substring:
    """Share of each evidence text that stands contiguously in a context, in characters.

    The longest common substring over the length of the evidence, white space folded on both sides.
    `threads` 0 takes every core. Source: score_IR with contiguous matches (docs/measures.md).
    """

    threads: int = runtime(0)
    name: ClassVar[str] = "substring"
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_threads(self.threads)

    def score(self, evidence: Sequence[str], context: str, ends: np.ndarray) -> np.ndarray:
        """float64 [len(evidence), len(ends)] in [0, 1]: evidence i in context[:ends[j]].

        `ends` rise from 0 to len(context). Raises DataError on evidence that is white space only.
        """
        return self.score_all([evidence], [context], [ends])[0]

    def score_all(
        self, evidence: Sequence[Sequence[str]], contexts: Sequence[str], ends: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """`score` of every context with its own evidence and ends, over threads."""
        return score_batches(self.name, character_batch, _match, evidence, contexts, ends, self.threads)


def _match(batch: Batch, out: np.ndarray) -> None:
    fold_contexts(batch)
    kernels().substrings(*batch.arrays, out)
