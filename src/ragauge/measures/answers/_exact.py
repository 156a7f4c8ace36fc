"""Exact match, token F1 and containment.

Source: Rajpurkar et al., SQuAD: 100,000+ Questions for Machine Comprehension of Text, EMNLP 2016, and its
evaluation script; of version 2.0 where a text has no token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ragauge.contract.checks import require_choice
from ragauge.contract.protocols import AnswerMeasureInfo, Tools
from ragauge.measures.answers._references import AgainstReferences
from ragauge.measures.answers._tokens import check_articles, tokens_of


@dataclass(frozen=True)
class ByTokens(AgainstReferences):
    """A value of two lists of tokens.

    tokens: `squad`, lower case without punctuation and articles; `plain`, the lower-case words between white
    space, without punctuation at their ends. articles: the words that squad leaves out.
    """

    version: ClassVar[int] = 2
    info: ClassVar[AnswerMeasureInfo]

    tokens: str = "squad"
    articles: Sequence[str] = ("a", "an", "the")

    def __post_init__(self) -> None:
        key = f"answers.{self.info.name}"
        require_choice(f"{key}.tokens", self.tokens, ("squad", "plain"))
        object.__setattr__(self, "articles", check_articles(f"{key}.articles", self.articles))

    @staticmethod
    def of_tokens(answer: Sequence[str], reference: Sequence[str]) -> float:
        """The value of an answer beside one reference, both as tokens."""
        raise NotImplementedError

    def compared(
        self, answers: Sequence[str], references: Sequence[str], tools: Tools
    ) -> Mapping[str, np.ndarray]:
        """The value of every pair."""
        tokens = tokens_of("tokens", self.tokens, self.articles)
        known = {text: tokens(text) for text in {*answers, *references}}
        pairs = zip(answers, references, strict=True)
        found = [self.of_tokens(known[answer], known[reference]) for answer, reference in pairs]
        return {self.info.name: np.array(found)}


@dataclass(frozen=True)
class ExactMatch(ByTokens):
    """1 where the tokens of the answer are those of a reference answer, else 0."""

    component: ClassVar[str] = "exact_match"
    info: ClassVar[AnswerMeasureInfo] = AnswerMeasureInfo("em", "exact match", unit="share")

    @staticmethod
    def of_tokens(answer: Sequence[str], reference: Sequence[str]) -> float:
        """1 or 0."""
        return float(answer == reference)


@dataclass(frozen=True)
class TokenF1(ByTokens):
    """The harmonic mean of precision and recall of the answer's tokens, each counted as often as in both."""

    component: ClassVar[str] = "token_f1"
    info: ClassVar[AnswerMeasureInfo] = AnswerMeasureInfo("f1", "token F1", unit="share")

    @staticmethod
    def of_tokens(answer: Sequence[str], reference: Sequence[str]) -> float:
        """In [0, 1]; where one of the two has no token, whether neither has."""
        if not answer or not reference:
            return float(answer == reference)
        common = (Counter(answer) & Counter(reference)).total()
        return 2 * common / (len(answer) + len(reference))


@dataclass(frozen=True)
class Contains(ByTokens):
    """1 where the tokens of a reference answer stand in the answer next to each other, else 0."""

    component: ClassVar[str] = "contains"
    info: ClassVar[AnswerMeasureInfo] = AnswerMeasureInfo("contains", "contains the reference", unit="share")

    @staticmethod
    def of_tokens(answer: Sequence[str], reference: Sequence[str]) -> float:
        """1 or 0; a reference without tokens stands in an answer without tokens alone."""
        size = len(reference)
        if not size:
            return float(not answer)
        return float(any(answer[i : i + size] == reference for i in range(len(answer) - size + 1)))
