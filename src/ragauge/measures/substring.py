"""The IR score's default match: the longest common substring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ragauge.measures._batches import Batch, BatchedMeasure, fold_parts, kernels


@dataclass(frozen=True)
class Substring(BatchedMeasure):
    """Share of each evidence text that stands contiguously in a context, in characters.

    The longest common substring over the length of the evidence, white space folded on both sides.
    `threads` 0 takes every core. Source: score_IR with contiguous matches (docs/measures.md).
    """

    component: ClassVar[str] = "substring"
    name: ClassVar[str] = "substring"
    encode = staticmethod(fold_parts)

    @staticmethod
    def match(batch: Batch, out: np.ndarray) -> None:
        """Writes the matched characters."""
        kernels().substrings(*batch.arrays, out)
