"""Exact match, token F1 and containment.

Source: Rajpurkar et al., SQuAD: 100,000+ Questions for Machine Comprehension of Text, EMNLP 2016, and its
evaluation script; of version 2.0 where a text has no token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ragauge.contract.checks import require_choice
from ragauge.contract.protocols import AnswerMeasureInfo, Tools
from ragauge.measures.answers._laid_out import LaidOut, by_tokens, places
from ragauge.measures.answers._references import AgainstReferences
from ragauge.measures.answers._tokens import check_articles, tokens_of


@dataclass(frozen=True)
class ByTokens(AgainstReferences):
    """A value of two lists of tokens.

    tokens: `squad`, lower case without ASCII's punctuation and articles, exactly as SQuAD's script; `mlqa`,
    the same for other languages (`normalised`); `plain`, the lower-case words between white space, without
    punctuation at their ends. articles: the words that squad and mlqa leave out.
    """

    version: ClassVar[int] = 3
    info: ClassVar[AnswerMeasureInfo]

    tokens: str = "squad"
    articles: Sequence[str] = ("a", "an", "the")

    def __post_init__(self) -> None:
        key = f"answers.{self.info.name}"
        require_choice(f"{key}.tokens", self.tokens, ("squad", "mlqa", "plain"))
        object.__setattr__(self, "articles", check_articles(f"{key}.articles", self.articles))

    @staticmethod
    def of_tokens(answers: LaidOut, references: LaidOut) -> np.ndarray:
        """float64 [pairs]: the values of answers beside references, as tokens."""
        raise NotImplementedError

    def compared(self, answers: Sequence[str], references: Sequence[str], tools: Tools) -> Mapping[str, np.ndarray]:
        """The value of every pair."""
        tokens = tokens_of("tokens", self.tokens, self.articles)
        return {self.info.name: self.of_tokens(*by_tokens(tokens, answers, references))}


@dataclass(frozen=True)
class ExactMatch(ByTokens):
    """1 where the tokens of the answer are those of a reference answer, else 0."""

    component: ClassVar[str] = "exact_match"
    info: ClassVar[AnswerMeasureInfo] = AnswerMeasureInfo("em", "exact match", unit="share")

    @staticmethod
    def of_tokens(answers: LaidOut, references: LaidOut) -> np.ndarray:
        """1 or 0."""
        return ((answers.sizes == references.sizes) & (places(answers, references) == 0)).astype(float)


@dataclass(frozen=True)
class TokenF1(ByTokens):
    """The harmonic mean of precision and recall of the answer's tokens, each counted as often as in both."""

    component: ClassVar[str] = "token_f1"
    info: ClassVar[AnswerMeasureInfo] = AnswerMeasureInfo("f1", "token F1", unit="share")

    @staticmethod
    def of_tokens(answers: LaidOut, references: LaidOut) -> np.ndarray:
        """In [0, 1]; where one of the two has no token, whether neither has."""
        from ragauge.measures.answers._kernels import ngram_matches  # here, since numba takes its time

        pairs = np.arange(len(answers.sizes) + 1)
        common = ngram_matches(answers.symbols, answers.at, references.symbols, references.at, pairs, 1)[:, 0]
        sizes = answers.sizes + references.sizes
        return np.where(sizes == 0, 1.0, 2 * common / np.maximum(sizes, 1))


@dataclass(frozen=True)
class Contains(ByTokens):
    """1 where the tokens of a reference answer stand in the answer next to each other, else 0."""

    component: ClassVar[str] = "contains"
    info: ClassVar[AnswerMeasureInfo] = AnswerMeasureInfo("contains", "contains the reference", unit="share")

    @staticmethod
    def of_tokens(answers: LaidOut, references: LaidOut) -> np.ndarray:
        """1 or 0; a reference without tokens stands in an answer without tokens alone."""
        found = places(answers, references) >= 0
        return np.where(references.sizes == 0, answers.sizes == 0, found).astype(float)
