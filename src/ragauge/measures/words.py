"""ROUGE-L recall: the longest common subsequence of words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import numpy as np

from ragauge.measures._batches import (
    NO_SYMBOL,
    Batch,
    BatchedMeasure,
    kernels,
    offsets,
)

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Words(BatchedMeasure):
    """Share of each evidence text's words that stand in a context in their order (ROUGE-L recall).

    A word is a longest run of letters and digits (`str.isalnum`), compared casefolded; a word that the end of
    a prefix cuts counts as what is left of it. Not for scripts that write no spaces. `threads` 0 takes every
    core. Source: Lin, ROUGE: a package for automatic evaluation of summaries, 2004, section 3.
    """

    name: ClassVar[str] = "words"

    @staticmethod
    def encode(
        evidence: Sequence[Sequence[str]], contexts: Sequence[str], ends: Sequence[np.ndarray]
    ) -> Batch:
        """The evidence and contexts as numbers of the evidence's words."""
        return _word_batch(evidence, contexts, ends)

    @staticmethod
    def match(batch: Batch, out: np.ndarray) -> None:
        """Writes the matched words."""
        kernels().subsequences(*batch.arrays, batch.cut, batch.characters, out)


def _word_batch(
    evidence: Sequence[Sequence[str]], contexts: Sequence[str], ends: Sequence[np.ndarray]
) -> Batch:
    """The batch whose symbols are numbers of the evidence's words."""
    parts = [_words(part, None, 0, len(part)) for part in chain.from_iterable(evidence)]
    part_sizes = np.array([len(part) for part in parts], dtype=np.int64)
    numbers: dict[str, int] = {}
    for word in chain.from_iterable(parts):
        numbers.setdefault(word, len(numbers))
    symbols: list[int] = []
    text_at, ends_in_words, cut = [0], [], []
    for context, context_ends in zip(contexts, ends, strict=True):
        folded = _fold_case(context)
        done = 0
        first = len(symbols)
        for end in map(int, context_ends):
            whole = _start_of_cut_word(context, end)
            if whole > done:
                symbols += [numbers.get(word, NO_SYMBOL) for word in _words(context, folded, done, whole)]
                done = whole
            ends_in_words.append(len(symbols) - first)
            cut.append(numbers.get(context[whole:end].casefold(), NO_SYMBOL))
        text_at.append(len(symbols))
    return Batch(
        parts=np.array([numbers[word] for word in chain.from_iterable(parts)], dtype=np.uint32),
        part_at=offsets(part_sizes),
        part_sizes=part_sizes,
        first_part=offsets([len(topic) for topic in evidence]),
        texts=np.array(symbols, dtype=np.uint32),
        text_at=np.array(text_at, dtype=np.int64),
        ends=np.array(ends_in_words, dtype=np.int64),
        ends_at=offsets([len(of_context) for of_context in ends]),
        cut=np.array(cut, dtype=np.uint32),
        characters=False,
    )


def _fold_case(text: str) -> str | None:
    """The text casefolded, where its characters keep their places and words stay words; else None."""
    folded = text.casefold()
    # Of the characters that fold to one character, only the iota below (U+0345) turns into a letter.
    return folded if len(folded) == len(text) and "\u0345" not in text else None


def _words(text: str, folded: str | None, start: int, end: int) -> list[str]:
    """The casefolded words of text[start:end]; `folded` is what `_fold_case` makes of the text."""
    if folded is not None:
        return _WORD.findall(folded, start, end)
    return [word.casefold() for word in _WORD.findall(text, start, end)]


def _start_of_cut_word(text: str, end: int) -> int:
    """Where the word begins that goes on past the end; the end itself where no word is cut."""
    if end == len(text) or not text[end].isalnum():
        return end
    while end > 0 and text[end - 1].isalnum():
        end -= 1
    return end
