"""chrF of every answer.

Source: Popović, chrF: character n-gram F-score for automatic MT evaluation, WMT 2015; values as of sacrebleu.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ragauge.contract.checks import require_count, require_flag, require_number
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.protocols import Tools
from ragauge.measures.answers import AgainstReferences
from ragauge.measures.tokens import LaidOut, code_points, offsets


@dataclass(frozen=True)
class ChrF(AgainstReferences):
    """The F-score of character n-grams, 1 to `order`, white space left out; recall counts beta times as much.

    Precision and recall are averaged over the orders that both texts have.
    """

    component: ClassVar[str] = "chrf"
    info: ClassVar[AnswerMeasureInfo] = AnswerMeasureInfo("chrf", "chrF", unit="share")

    order: int = 6
    beta: float = 2
    lowercase: bool = False

    def __post_init__(self) -> None:
        require_count("answers.chrf.order", self.order, most=20)
        require_number("answers.chrf.beta", self.beta, 0, above=True)
        require_flag("answers.chrf.lowercase", self.lowercase)

    def compared(self, answers: Sequence[str], references: Sequence[str], tools: Tools) -> Mapping[str, np.ndarray]:
        """chrF of every pair, in [0, 1]; 0 if either has no character."""
        texts, others = (_by_characters([*map(self._bare, group)]) for group in (answers, references))
        matches, own, other = texts.matches(others, self.order), texts.ngrams(self.order), others.ngrams(self.order)
        both = (own > 0) & (other > 0)
        orders = np.maximum(both.sum(axis=1), 1)
        precision = np.where(both, matches / np.maximum(own, 1), 0.0).sum(axis=1) / orders
        recall = np.where(both, matches / np.maximum(other, 1), 0.0).sum(axis=1) / orders
        squared = self.beta**2
        below = squared * precision + recall
        found = (1 + squared) * precision * recall / np.where(below > 0, below, 1.0)
        return {self.info.name: found}

    def _bare(self, text: str) -> str:
        return "".join((text.lower() if self.lowercase else text).split())


def _by_characters(texts: Sequence[str]) -> LaidOut:
    """The texts as code points."""
    return LaidOut(code_points("".join(texts)).astype(np.int64), offsets(map(len, texts)))
