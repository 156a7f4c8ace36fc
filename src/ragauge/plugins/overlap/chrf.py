"""chrF of every answer.

Source: Popović, chrF: character n-gram F-score for automatic MT evaluation, WMT 2015; values as of sacrebleu.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ragauge.contract.checks import require_count, require_flag, require_number
from ragauge.contract.component import Tools
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.measures.answers import AgainstReferences, of_pairs
from ragauge.measures.tokens import matched


@dataclass(frozen=True)
class ChrF(AgainstReferences):
    """The F-score of character n-grams, 1 to `order`, white space left out; recall counts beta times as much.

    Precision and recall are averaged over the orders that both texts have.
    """

    component = "chrf"
    info = AnswerMeasureInfo("chrf", "chrF", unit="share")

    order: int = 6
    beta: float = 2
    lowercase: bool = False

    def __post_init__(self) -> None:
        require_count("answers.chrf.order", self.order, most=20)
        require_number("answers.chrf.beta", self.beta, 0, above=True)
        require_flag("answers.chrf.lowercase", self.lowercase)

    def compared(self, answers: Sequence[str], references: Sequence[str], tools: Tools) -> Mapping[str, np.ndarray]:
        """chrF of every pair, in [0, 1]; 0 if either has no character."""
        return {self.info.name: of_pairs(self._value, self._bare, answers, references)}

    def _value(self, text: str, other: str) -> float:
        orders = range(1, min(self.order, len(text), len(other)) + 1)
        if not orders:
            return 0.0
        matches = [matched(text, [other], n) for n in orders]
        precision, recall = (
            sum(found / (len(one) - n + 1) for found, n in zip(matches, orders, strict=True)) / len(orders)
            for one in (text, other)
        )
        below = self.beta**2 * precision + recall
        return (1 + self.beta**2) * precision * recall / below if below else 0.0

    def _bare(self, text: str) -> str:
        return "".join((text.lower() if self.lowercase else text).split())
