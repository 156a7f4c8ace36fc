"""The usual answer measures in one: free, and left out where there is nothing to measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ragauge.contract.protocols import AnswerMeasureInfo, Tools
from ragauge.measures.answers._exact import Contains, ExactMatch, TokenF1
from ragauge.measures.answers._references import AgainstReferences
from ragauge.measures.answers._rouge import RougeL

_PARTS = (ExactMatch(), TokenF1(), Contains(), RougeL())


@dataclass(frozen=True)
class Usual(AgainstReferences):
    """Exact match, token F1, containment and ROUGE-L, each as it is by itself.

    A job without answers or references has none of them, where a measure that was named by itself would be an
    error.
    """

    component: ClassVar[str] = "usual"
    version: ClassVar[int] = 2
    optional: ClassVar[bool] = True
    infos: ClassVar[tuple[AnswerMeasureInfo, ...]] = tuple(part.info for part in _PARTS)

    def compared(self, answers: Sequence[str], references: Sequence[str], tools: Tools) -> Mapping[str, np.ndarray]:
        """The values of all parts."""
        found: dict[str, np.ndarray] = {}
        for part in _PARTS:
            found |= part.compared(answers, references, tools)
        return found
