"""BLEU of every answer, and of all answers of a job as one corpus.

Source: Papineni et al., BLEU: a method for automatic evaluation of machine translation, ACL 2002. Values of sentences
are those of sacrebleu (Post, A call for clarity in reporting BLEU scores, WMT 2018). Or they are those of nltk with the
fourth smoothing of Chen and Cherry, A systematic comparison of smoothing techniques for sentence-level BLEU, WMT 2014.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.checks import is_number, require, require_choice, require_flag
from ragauge.contract.component import Tools
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.topics import references as references_of
from ragauge.measures.answers import AgainstReferences, as_read
from ragauge.measures.tokens import Tokens, matched, tokens_of

OF_SACREBLEU = ("13a", "intl", "zh", "char", "none")  # its tokenizers that read no model and no dictionary
# Of sacrebleu, with its own values of `floor` and `add-k`; nltk_4 is method4 of nltk's SmoothingFunction.
SMOOTHING = ("exp", "floor", "add-k", "none", "nltk_4")
_NLTK_K = 5


@dataclass(frozen=True)
class _Counts:
    """Matching and all n-grams of an answer, by order from 1; its length and that of the closest reference."""

    correct: list[int]
    total: list[int]
    size: int
    other_size: int

    def first(self, n: int) -> _Counts:
        return _Counts(self.correct[:n], self.total[:n], self.size, self.other_size)


@dataclass(frozen=True)
class Bleu(AgainstReferences):
    """BLEU-n of each answer for every n of `orders`: the geometric mean of the precisions of 1- to n-grams.

    tokens: a tokenizer of sacrebleu (13a, intl, zh, char, none), or squad, plain, words (`tokens_of`).
    lowercase: whether sacrebleu's see lower case; the others always do. smoothing: replaces the precision of an order
    without a match. `exp`, `floor`, `add-k`, `none` as in sacrebleu, orders that are longer than the answer left out;
    `nltk_4` as in nltk. Each reference is compared by itself, and the best counts.
    """

    component = "bleu"
    job_metrics = ("bleu_corpus",)
    version = 2

    orders: Sequence[int] = (1, 2, 4)
    tokens: str = "13a"
    lowercase: bool = False
    smoothing: str = "exp"

    def __post_init__(self) -> None:
        ok = isinstance(self.orders, (list, tuple)) and all(
            is_number(n) and int(n) == n and 1 <= n <= 4 for n in self.orders
        )
        require("answers.bleu.orders", self.orders, ok and len(self.orders) > 0, "lists of integers from 1 to 4")
        require_choice("answers.bleu.tokens", self.tokens, ("squad", "plain", "words", *OF_SACREBLEU))
        require_flag("answers.bleu.lowercase", self.lowercase)
        require_choice("answers.bleu.smoothing", self.smoothing, SMOOTHING)
        object.__setattr__(self, "orders", tuple(sorted({int(n) for n in self.orders})))

    @property
    def infos(self) -> tuple[AnswerMeasureInfo, ...]:
        """One info per order."""
        return tuple(AnswerMeasureInfo(f"bleu_{n}", f"BLEU-{n}", unit="share") for n in self.orders)

    def compared(self, answers: Sequence[str], references: Sequence[str], tools: Tools) -> Mapping[str, np.ndarray]:
        """Sentence BLEU of every pair, in [0, 1]."""
        pairs = as_read(self._tokens(), answers, references)
        counts = [self._counts(answer, [reference]) for answer, reference in pairs]
        return {
            f"bleu_{n}": np.array([sentence_bleu(of.first(n), self.smoothing) for of in counts]) for n in self.orders
        }

    def of_job(self, topics: pd.DataFrame, answers: pd.DataFrame) -> dict[str, float]:
        """`bleu_corpus`: sacrebleu's corpus BLEU of the highest order over all answered topics, in [0, 1].

        Counts of n-grams are summed over the answers. With several references an n-gram counts as often as it stands in
        the one that has it most, and the length is that of the reference closest in length. {} where nothing can be
        compared.
        """
        from sacrebleu.metrics.bleu import BLEU

        known = references_of(topics)
        rows = [
            (answer, known[qid])
            for qid, answer in zip(answers["qid"], answers["answer"], strict=True)
            if isinstance(answer, str) and known[qid]
        ]
        if not rows:
            return {}
        tokens = self._tokens()
        counts = [self._counts(tokens(answer), [*map(tokens, many)]) for answer, many in rows]
        found = BLEU.compute_bleu(
            [sum(of) for of in zip(*(of.correct for of in counts), strict=True)],
            [sum(of) for of in zip(*(of.total for of in counts), strict=True)],
            sum(of.size for of in counts),
            sum(of.other_size for of in counts),
            smooth_method="exp" if self.smoothing == "nltk_4" else self.smoothing,
            max_ngram_order=max(self.orders),
        )
        return {"bleu_corpus": found.score / 100}

    def _counts(self, answer: list[str], references: list[list[str]]) -> _Counts:
        orders, size = range(1, max(self.orders) + 1), len(answer)
        closest = min(map(len, references), key=lambda other: (abs(other - size), other))
        total = [max(size - n + 1, 0) for n in orders]
        return _Counts([matched(answer, references, n) for n in orders], total, size, closest)

    def _tokens(self) -> Tokens:
        if self.tokens not in OF_SACREBLEU:
            return tokens_of("answers.bleu.tokens", self.tokens)
        from sacrebleu.metrics.bleu import BLEU

        tokenize = BLEU(tokenize=self.tokens, lowercase=self.lowercase)._preprocess_segment
        return lambda text: tokenize(text).split()


def sentence_bleu(of: _Counts, smoothing: str) -> float:
    """BLEU in [0, 1] from the numbers of n-grams."""
    if smoothing == "nltk_4":
        return _bleu_of_nltk(of)
    from sacrebleu.metrics.bleu import BLEU

    order = len(of.total)
    return BLEU.compute_bleu(of.correct, of.total, of.size, of.other_size, smoothing, None, True, order).score / 100


def _bleu_of_nltk(of: _Counts) -> float:
    """The same as nltk smooths it; a precision that is still 0 counts as 1."""
    if not of.correct[0]:
        return 0.0
    logs, divisor = 0.0, float(_NLTK_K)
    for correct, total in zip(of.correct, of.total, strict=True):
        found: float = correct
        if not correct and of.size > 1:
            divisor *= 2
            found = math.log(of.size) / divisor
        logs += math.log(found / max(total, 1)) if found else 0.0
    shorter = min(1 - of.other_size / of.size, 0.0)
    return math.exp(shorter + logs / len(of.total))
