"""ROUGE-1, -2 and -L of every answer.

Source: Lin, ROUGE: a package for automatic evaluation of summaries, 2004; values as of
the package rouge-score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ragauge.contract.checks import require_choice, require_count
from ragauge.contract.protocols import AnswerMeasureInfo, Tools
from ragauge.measures.answers._laid_out import LaidOut, by_tokens
from ragauge.measures.answers._references import AgainstReferences
from ragauge.measures.answers._tokens import tokens_of

_TOKENS = ("words", "rouge_score", "squad", "plain")
_VALUES = ("f1", "precision", "recall")


@dataclass(frozen=True)
class _Rouge(AgainstReferences):
    """What answer and reference share, over the answer (precision), the reference (recall), or both (f1)."""

    tokens: str = "words"
    value: str = "f1"

    def __post_init__(self) -> None:
        key = f"answers.{self.info.name}"
        require_choice(f"{key}.tokens", self.tokens, _TOKENS)
        require_choice(f"{key}.value", self.value, _VALUES)

    @property
    def info(self) -> AnswerMeasureInfo:
        """How it is shown."""
        raise NotImplementedError

    def shared(self, texts: LaidOut, others: LaidOut) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of every pair what both share, and of how much in the answer and in the reference."""
        raise NotImplementedError

    def compared(self, answers: Sequence[str], references: Sequence[str], tools: Tools) -> Mapping[str, np.ndarray]:
        """Precision, recall or F1 of every pair, in [0, 1]; 0 where one of the two has no token."""
        shared, own, other = self.shared(*by_tokens(tokens_of("tokens", self.tokens), answers, references))
        of = {"precision": own, "recall": other, "f1": (own + other) / 2}[self.value]
        return {self.info.name: shared / np.maximum(of, 0.5)}


@dataclass(frozen=True)
class RougeN(_Rouge):
    """ROUGE-n: n-grams, each counted as often as in both.

    tokens: `words`, runs of letters and digits of any script; `rouge_score`, of ASCII alone, as that package
    has them; `squad`, `plain`. value: f1, precision or recall.
    """

    component: ClassVar[str] = "rouge_n"

    n: int = 1

    def __post_init__(self) -> None:
        require_count("answers.rouge_1.n", self.n, most=9)
        super().__post_init__()

    @property
    def info(self) -> AnswerMeasureInfo:
        """rouge_1 for n = 1."""
        return AnswerMeasureInfo(f"rouge_{self.n}", f"ROUGE-{self.n}", unit="share")

    def shared(self, texts: LaidOut, others: LaidOut) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Matching n-grams, and the n-grams of both."""
        from ragauge.measures.answers._kernels import ngram_matches  # here, since numba takes its time

        pairs = np.arange(len(texts.sizes) + 1)
        found = ngram_matches(texts.symbols, texts.at, others.symbols, others.at, pairs, self.n)[:, -1]
        own, other = (np.maximum(one.sizes - self.n + 1, 0) for one in (texts, others))
        return found, own, other


@dataclass(frozen=True)
class RougeL(_Rouge):
    """ROUGE-L: the longest common subsequence of tokens; tokens and value as of ROUGE-n."""

    component: ClassVar[str] = "rouge_l"

    @property
    def info(self) -> AnswerMeasureInfo:
        """rouge_l."""
        return AnswerMeasureInfo("rouge_l", "ROUGE-L", unit="share")

    def shared(self, texts: LaidOut, others: LaidOut) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tokens of the longest common subsequence, and the tokens of both."""
        from ragauge.measures.answers._kernels import common_subsequences

        found = common_subsequences(texts.symbols, texts.at, others.symbols, others.at)
        return found, texts.sizes, others.sizes
