"""BLEU of every answer, and of all answers of a job as one corpus.

Source: Papineni et al., BLEU: a method for automatic evaluation of machine translation, ACL 2002. Values of sentences
are those of sacrebleu (Post, A call for clarity in reporting BLEU scores, WMT 2018). Or they are those of nltk with the
fourth smoothing of Chen and Cherry, A systematic comparison of smoothing techniques for sentence-level BLEU, WMT 2014.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from ragauge.contract.checks import is_number, require, require_choice, require_flag
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.protocols import Tools
from ragauge.contract.topics import references as references_of
from ragauge.measures.answers import AgainstReferences
from ragauge.measures.tokens import Tokens, by_tokens, tokens_of

OF_SACREBLEU = ("13a", "intl", "zh", "char", "none")  # its tokenizers that read no model and no dictionary
# Of sacrebleu, with its own values of `floor` and `add-k`; nltk_4 is method4 of nltk's SmoothingFunction.
SMOOTHING = ("exp", "floor", "add-k", "none", "nltk_4")
_NLTK_K = 5


@dataclass(frozen=True)
class Bleu(AgainstReferences):
    """BLEU-n of each answer for every n of `orders`: the geometric mean of the precisions of 1- to n-grams.

    tokens: a tokenizer of sacrebleu (13a, intl, zh, char, none), or squad, plain, words (`tokens_of`).
    lowercase: whether sacrebleu's see lower case; the others always do. smoothing: replaces the precision of an order
    without a match. `exp`, `floor`, `add-k`, `none` as in sacrebleu, orders that are longer than the answer left out;
    `nltk_4` as in nltk. Each reference is compared by itself, and the best counts.
    """

    component: ClassVar[str] = "bleu"
    job_metrics: ClassVar[tuple[str, ...]] = ("bleu_corpus",)
    version: ClassVar[int] = 2

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
        texts, others = by_tokens(self._tokens(), answers, references)
        correct = texts.matches(others, max(self.orders))
        return {
            f"bleu_{n}": sentence_bleu(correct[:, :n], texts.ngrams(n), texts.sizes, others.sizes, self.smoothing)
            for n in self.orders
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
        order = max(self.orders)
        texts, others = by_tokens(self._tokens(), [a for a, _ in rows], [r for _, many in rows for r in many])
        first = np.concatenate([[0], np.cumsum([len(many) for _, many in rows])])
        correct = texts.matches(others, order, first)
        closest = [
            min(others.sizes[a:b].tolist(), key=lambda size, own=own: (abs(size - own), size))  # type: ignore[misc]
            for a, b, own in zip(first, first[1:], texts.sizes.tolist(), strict=False)
        ]
        found = BLEU.compute_bleu(
            correct.sum(axis=0).tolist(),
            texts.ngrams(order).sum(axis=0).tolist(),
            int(texts.sizes.sum()),
            sum(closest),
            smooth_method="exp" if self.smoothing == "nltk_4" else self.smoothing,
            max_ngram_order=order,
        )
        return {"bleu_corpus": found.score / 100}

    def _tokens(self) -> Tokens:
        if self.tokens not in OF_SACREBLEU:
            return tokens_of("answers.bleu.tokens", self.tokens)
        from sacrebleu.metrics.bleu import BLEU

        tokenize = BLEU(tokenize=self.tokens, lowercase=self.lowercase)._preprocess_segment
        # 13a joins words that a hyphen divides at the end of a line; of the others each text is read as a whole.
        return Tokens(lambda text: tokenize(text).split(), across="\n" if self.tokens == "13a" else "")


def sentence_bleu(
    correct: np.ndarray, total: np.ndarray, sizes: np.ndarray, other_sizes: np.ndarray, smoothing: str
) -> np.ndarray:
    """float64 [pairs] in [0, 1]: BLEU from the numbers of matching and of all n-grams (column n - 1)."""
    order = correct.shape[1]
    if smoothing != "nltk_4":
        from sacrebleu.metrics.bleu import BLEU

        rows = zip(correct.tolist(), total.tolist(), sizes.tolist(), other_sizes.tolist(), strict=True)
        return np.array([BLEU.compute_bleu(*row, smoothing, None, True, order).score / 100 for row in rows])
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = _log_precisions_of_nltk(correct, total, sizes)
        shorter = np.where(sizes < other_sizes, np.exp(1 - other_sizes / np.maximum(sizes, 1)), 1.0)
        found = shorter * np.exp(mean)
    return np.where(correct[:, 0] > 0, found, 0.0)


def _log_precisions_of_nltk(correct: np.ndarray, total: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The mean logarithm of the precisions, as in nltk: one that is still 0 counts as 1."""
    total = np.maximum(total, 1)
    zero = (correct == 0) & (sizes > 1)[:, None]
    times = np.cumsum(zero, axis=1)
    smoothed = np.log(sizes)[:, None] / (2.0**times * _NLTK_K) / total
    precision = np.where(zero, smoothed, correct / total)
    return np.where(precision > 0, np.log(precision), 0.0).sum(axis=1) / correct.shape[1]
