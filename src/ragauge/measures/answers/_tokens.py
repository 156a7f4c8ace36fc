"""Exact match, token F1 and containment, after SQuAD's normalisation.

Source: Rajpurkar et al., SQuAD: 100,000+ Questions for Machine Comprehension of Text, EMNLP 2016, and its
evaluation script; of version 2.0 where a text has no token.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from ragauge.contract.protocols import AnswerMeasureInfo, Tools
from ragauge.contract.topics import references
from ragauge.measures.answers._frame import measured

_ARTICLE = re.compile(r"\b(a|an|the)\b")
_ASCII = frozenset(string.punctuation)  # the script's own, symbols such as $ and + among them


def normalised(text: str) -> list[str]:
    """The tokens of a text: lower case, without punctuation and the articles a, an, the.

    Punctuation is what Unicode has in its P categories, and the signs of ASCII, $ and + among them.
    """
    kept = (c for c in text.lower() if c not in _ASCII and not unicodedata.category(c).startswith("P"))
    return _ARTICLE.sub(" ", "".join(kept)).split()


class _Reference:
    """The best value over a topic's reference answers."""

    uses: ClassVar[frozenset[str]] = frozenset()
    needs: ClassVar[frozenset[str]] = frozenset({"references", "answers"})
    info: ClassVar[AnswerMeasureInfo]

    @staticmethod
    def compared(answer: Sequence[str], reference: Sequence[str]) -> float:
        """The value of an answer beside one reference, both as tokens."""
        raise NotImplementedError

    def measure(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        contexts: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`."""
        known = {qid: [normalised(one) for one in texts] for qid, texts in references(topics).items()}

        def best(qid: str, answer: str) -> float:
            tokens = normalised(answer)
            return max(self.compared(tokens, reference) for reference in known[qid])

        return measured(answers, self.info.name, best, {qid for qid, texts in known.items() if not texts})


@dataclass(frozen=True)
class ExactMatch(_Reference):
    """1 where the tokens of the answer are those of a reference answer, else 0."""

    component: ClassVar[str] = "exact_match"
    info: ClassVar[AnswerMeasureInfo] = AnswerMeasureInfo("em", "exact match", unit="share")

    @staticmethod
    def compared(answer: Sequence[str], reference: Sequence[str]) -> float:
        """1 or 0."""
        return float(answer == reference)


@dataclass(frozen=True)
class TokenF1(_Reference):
    """The harmonic mean of precision and recall of the answer's tokens, each counted as often as in both."""

    component: ClassVar[str] = "token_f1"
    info: ClassVar[AnswerMeasureInfo] = AnswerMeasureInfo("f1", "token F1", unit="share")

    @staticmethod
    def compared(answer: Sequence[str], reference: Sequence[str]) -> float:
        """In [0, 1]; where one of the two has no token, whether neither has."""
        if not answer or not reference:
            return float(answer == reference)
        common = (Counter(answer) & Counter(reference)).total()
        return 2 * common / (len(answer) + len(reference))


@dataclass(frozen=True)
class Contains(_Reference):
    """1 where the tokens of a reference answer stand in the answer next to each other, else 0."""

    component: ClassVar[str] = "contains"
    info: ClassVar[AnswerMeasureInfo] = AnswerMeasureInfo("contains", "contains the reference", unit="share")

    @staticmethod
    def compared(answer: Sequence[str], reference: Sequence[str]) -> float:
        """1 or 0; a reference without tokens stands in an answer without tokens alone."""
        size = len(reference)
        if not size:
            return float(not answer)
        return float(any(answer[i : i + size] == reference for i in range(len(answer) - size + 1)))
