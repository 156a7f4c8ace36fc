"""ROUGE-L recall: the longest common subsequence of words."""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ragauge.measures._batches import Batch, BatchedMeasure, code_points, kernels, offsets


@dataclass(frozen=True)
class Words(BatchedMeasure):
    """Share of each evidence text's words that stand in a context in their order (ROUGE-L recall).

    A word is a longest run of letters and digits (`str.isalnum`), compared casefolded; a word that the end of
    a prefix cuts counts as what is left of it. Not for scripts that write no spaces. `threads` 0 takes every
    core. Source: Lin, ROUGE: a package for automatic evaluation of summaries, 2004, section 3.
    """

    component: ClassVar[str] = "words"
    name: ClassVar[str] = "words"

    @staticmethod
    def encode(batch: Batch) -> Batch:
        """The evidence's words as numbers, and those words of the contexts that stand in their evidence."""
        from ragauge.measures._word_kernels import number_words  # here, since numba takes its time

        part_words, part_sizes, text_words, text_words_at, words_before, last_word = number_words(
            batch.parts, batch.part_at, batch.first_part, batch.texts, batch.text_at, batch.ends,
            batch.ends_at, *_folds(),
        )  # fmt: skip
        return replace(
            batch,
            parts=part_words,
            part_at=offsets(part_sizes),
            part_sizes=part_sizes,
            texts=text_words,
            text_at=text_words_at,
            ends=words_before,
            cut=last_word,
            characters=False,
        )

    @staticmethod
    def match(batch: Batch, out: np.ndarray) -> None:
        """Writes the matched words."""
        kernels().subsequences(*batch.arrays, batch.cut, batch.characters, out)


@functools.cache
def _folds() -> tuple[np.ndarray, np.ndarray]:
    """`folds` and `long_folds` of `number_words`, from Python: uint32 [0x110000] and [about 100, 3]."""
    every = np.arange(sys.maxunicode + 1, dtype=np.uint32).tobytes().decode("utf-32-le", "surrogatepass")
    folds = np.zeros(len(every), dtype=np.uint32)
    several: list[str] = []
    for run in re.finditer(r"[^\W_]+", every):  # of characters that are str.isalnum
        start, end = run.span()
        folded = run[0].casefold()
        if len(folded) == end - start:
            folds[start:end] = code_points(folded)
            continue
        for code, fold in enumerate(map(str.casefold, run[0]), start):
            folds[code] = ord(fold) if len(fold) == 1 else len(every) + len(several)
            several += [fold] if len(fold) > 1 else []
    return folds, np.array(several).view(np.uint32).reshape(len(several), -1)
