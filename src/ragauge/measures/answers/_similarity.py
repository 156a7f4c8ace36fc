"""How near an answer is to a reference for the configured embedder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ragauge.contract.protocols import AnswerMeasureInfo, Tools
from ragauge.measures.answers._references import AgainstReferences


@dataclass(frozen=True)
class Similarity(AgainstReferences):
    """The cosine of the vectors of answer and reference, in [-1, 1]; the best reference counts.

    The embedder reads a text up to its own limit of tokens.
    """

    component: ClassVar[str] = "similarity"
    uses: ClassVar[frozenset[str]] = frozenset({"embedder"})
    info: ClassVar[AnswerMeasureInfo] = AnswerMeasureInfo("similarity", "similarity to the reference", unit="signed")

    def compared(self, answers: Sequence[str], references: Sequence[str], tools: Tools) -> Mapping[str, np.ndarray]:
        """The cosine of every pair; every distinct text is embedded once, as a passage."""
        texts = list(dict.fromkeys([*answers, *references]))
        row = {text: i for i, text in enumerate(texts)}
        vectors = tools.embedder.embed(texts)
        left, right = (vectors[[row[text] for text in group]] for group in (answers, references))
        cosine = np.einsum("ij,ij->i", left.astype(np.float64), right.astype(np.float64))
        return {self.info.name: np.clip(cosine, -1.0, 1.0)}
