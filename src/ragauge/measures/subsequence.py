"""The match that the IR score's paper names: the longest common subsequence of characters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ragauge.measures._batches import Batch, BatchedMeasure, fold_parts, kernels


@dataclass(frozen=True)
class Subsequence(BatchedMeasure):
    """Share of each evidence text's characters that stand in a context in their order, gaps allowed.

    The longest common subsequence over the length of the evidence, white space folded on both sides. Of a
    long text it says almost nothing (docs/measures.md); it is here to be compared. `threads` 0 takes every
    core.
    """

    component: ClassVar[str] = "subsequence"
    name: ClassVar[str] = "subsequence"
    encode = staticmethod(fold_parts)

    @staticmethod
    def match(batch: Batch, out: np.ndarray) -> None:
        """Writes the matched characters."""
        kernels().subsequences(*batch.arrays, batch.cut, batch.characters, out)
