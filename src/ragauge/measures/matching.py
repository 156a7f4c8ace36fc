"""Config group `measure`: the share of the evidence in a context, by characters or words.

Texts are flat arrays of numbers, as the kernels read them, in batches over threads.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from ragauge.contract.checks import require_choice, require_count
from ragauge.contract.errors import DataError
from ragauge.contract.identity import later, runtime
from ragauge.contract.measures import Measure
from ragauge.contract.progress import progress
from ragauge.measures.tokens import NO_SYMBOL, code_points, offsets
from ragauge.texts.folding import checked_folds, fold_prefixes, fold_text

# Large enough that threads seldom wait for the interpreter's lock, small enough that the allocator keeps the
# memory of one batch for the next. Measured: of 2 million `words` takes 20 to 50 % longer; of 0.5 million,
# two threads gain `substring` less.
_BATCH_CHARS = 1_000_000


CORRECTIONS = ("none", "floor")  # of a measure's values, by `ragauge.measures.floor`


@dataclass(frozen=True)
class Batch:
    """Evidence parts and contexts as symbols (uint32), laid out as `_kernels` says; the others are int64.

    `characters` says that the symbols are those of the texts, white space and all. Nothing writes to `texts`.
    """

    parts: np.ndarray
    part_at: np.ndarray
    part_sizes: np.ndarray
    first_part: np.ndarray
    texts: np.ndarray
    text_at: np.ndarray
    ends: np.ndarray
    ends_at: np.ndarray
    cut: np.ndarray
    characters: bool

    def __post_init__(self) -> None:
        self.texts.setflags(write=False)  # as texts that come from bytes are: kernels compile for one of both

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arguments of every matching kernel, in its order."""
        return (
            self.parts,
            self.part_at,
            self.part_sizes,
            self.first_part,
            self.texts,
            self.text_at,
            self.ends,
            self.ends_at,
        )


def lay_out(evidence: Sequence[Sequence[str]], contexts: Sequence[str], ends: Sequence[np.ndarray]) -> Batch:
    """The batch with unfolded characters (code points) as symbols."""
    parts = list(chain.from_iterable(evidence))
    part_sizes = np.array([len(part) for part in parts], dtype=np.int64)
    end_counts = [len(of_context) for of_context in ends]
    return Batch(
        parts=code_points("".join(parts)).copy(),
        part_at=offsets(part_sizes),
        part_sizes=part_sizes,
        first_part=offsets([len(topic) for topic in evidence]),
        texts=code_points("".join(contexts)),
        text_at=offsets([len(context) for context in contexts]),
        ends=np.concatenate(ends).astype(np.int64),
        ends_at=offsets(end_counts),
        cut=np.full(sum(end_counts), NO_SYMBOL, dtype=np.uint32),
        characters=True,
    )


@dataclass(frozen=True)
class BatchedMeasure(Measure):
    """A measure whose kernel takes many topics at a time, over `threads` threads (0: every core).

    A measure names itself, what symbols characters become, and the kernel that writes the matched symbols.
    `fold` says which spellings count as one (`ragauge.texts.folding.FOLDS`), in the evidence and in every
    prefix by itself. `correct` is for the stages: `score` gives the raw values either way.
    """

    threads: int = runtime(0)
    correct: str = later("none")
    fold: tuple[str, ...] = later(())

    def __post_init__(self) -> None:
        require_count("measure.threads", self.threads, 0, "0: every core")
        require_choice("measure.correct", self.correct, CORRECTIONS)
        object.__setattr__(self, "fold", checked_folds("measure.fold", self.fold))

    def score(self, evidence: Sequence[str], context: str, ends: np.ndarray) -> np.ndarray:
        """Share of evidence i in context[:ends[j]], float64 [len(evidence), len(ends)] in [0, 1].

        `ends` rise from 0 to len(context). Raises DataError on evidence that has nothing to match.
        """
        return self.score_all([evidence], [context], [ends])[0]

    def score_all(
        self, evidence: Sequence[Sequence[str]], contexts: Sequence[str], ends: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """`score` of every context with its own evidence and ends, over threads.

        Raises ValueError on ends that do not rise within their context, DataError on evidence that has
        nothing to match.
        """
        _check(evidence, contexts, ends)
        if not any(evidence):
            return [np.empty((0, len(of_context))) for of_context in ends]

        def score(bounds: tuple[int, int]) -> list[np.ndarray]:
            of_batch = slice(*bounds)
            texts = evidence[of_batch], contexts[of_batch], ends[of_batch]
            return self._folded(*texts) if self.fold else self._plain(*texts)

        threads = self.threads or _cores()
        bounds = _batch_bounds(contexts, threads)
        found: list[np.ndarray] = []
        with ExitStack() as stack:
            # A batch's texts are laid out under the interpreter's lock, its kernel runs without.
            alone = threads == 1 or len(bounds) < 2
            run = map if alone else stack.enter_context(ThreadPoolExecutor(threads)).map
            bar = stack.enter_context(progress(len(contexts), f"scoring by {self.name}", "context"))
            for of_batch in run(score, bounds):
                found += of_batch
                bar.update(len(of_batch))
        return found

    def _plain(
        self, evidence: Sequence[Sequence[str]], contexts: Sequence[str], ends: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """`score_all` of one batch without folding spellings."""
        batch = self.encode(lay_out(evidence, contexts, ends))
        if not batch.part_sizes.all():
            nothing = list(chain.from_iterable(evidence))[int(np.argmin(batch.part_sizes))]
            raise DataError(f"measure {self.name}: evidence {nothing!r} has nothing to match")
        return self._score(batch)

    def _folded(
        self, evidence: Sequence[Sequence[str]], contexts: Sequence[str], ends: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """`score_all` of one batch with its spellings folded."""
        parts = [[fold_text(part, self.fold) for part in of_topic] for of_topic in evidence]
        folded = [fold_prefixes(*context, self.fold) for context in zip(contexts, ends, strict=True)]
        # A prefix that the folded text does not hold is a context of its own.
        extra = [(i, j, text) for i, (_, _, own) in enumerate(folded) for j, text in own.items()]
        found = self._plain(
            [*parts, *(parts[i] for i, _, _ in extra)],
            [*(text for text, _, _ in folded), *(text for _, _, text in extra)],
            [*(at for _, at, _ in folded), *(np.array([len(text)]) for _, _, text in extra)],
        )
        for (i, j, _), alone in zip(extra, found[len(folded) :], strict=True):
            found[i][:, j] = alone[:, 0]
        return found[: len(folded)]

    def _score(self, batch: Batch) -> list[np.ndarray]:
        """Matched symbols over the part's symbols, float64 [its parts, its ends] per context."""
        part_counts, end_counts = np.diff(batch.first_part), np.diff(batch.ends_at)
        out = np.empty(int(part_counts @ end_counts))
        self.match(batch, out)
        out /= np.repeat(batch.part_sizes, np.repeat(end_counts, part_counts))
        found, at = [], 0
        for shape in zip(part_counts.tolist(), end_counts.tolist(), strict=True):
            size = shape[0] * shape[1]
            found.append(out[at : at + size].reshape(shape))
            at += size
        return found

    @staticmethod
    def encode(batch: Batch) -> Batch:
        """The batch of `lay_out` as matching symbols: characters, with the evidence's white space folded."""
        _kernels().fold(batch.parts, batch.part_at, batch.part_sizes)
        return batch

    @staticmethod
    def match(batch: Batch, out: np.ndarray) -> None:
        """Writes the matched symbols by context and part: the longest common subsequence."""
        _kernels().subsequences(*batch.arrays, batch.cut, batch.characters, out)


@dataclass(frozen=True)
class Substring(BatchedMeasure):
    """Share of each evidence text that stands contiguously in a context, in characters.

    The longest common substring over the length of the evidence, white space folded on both sides.
    `threads` 0 takes every core. Source: score_IR with contiguous matches (docs/measures.md).
    """

    component = "substring"
    name = "substring"

    @staticmethod
    def match(batch: Batch, out: np.ndarray) -> None:
        """Writes the characters of the longest common substring."""
        _kernels().substrings(*batch.arrays, out)


@dataclass(frozen=True)
class Subsequence(BatchedMeasure):
    """Share of each evidence text's characters that stand in a context in their order, gaps allowed.

    The longest common subsequence over the length of the evidence, white space folded on both sides. It is nearly
    meaningless for a long text (docs/measures.md); it is here to be compared. `threads` 0 takes every core.
    """

    component = "subsequence"
    name = "subsequence"


@dataclass(frozen=True)
class Words(BatchedMeasure):
    """Share of each evidence text's words that stand in a context in their order (ROUGE-L recall).

    A word is a longest run of letters and digits (`str.isalnum`), compared casefolded; a word that the end of
    a prefix cuts counts as what is left of it. Not for scripts that write no spaces. `threads` 0 takes every
    core. Source: Lin, ROUGE: a package for automatic evaluation of summaries, 2004, section 3.
    """

    component = "words"
    name = "words"

    @staticmethod
    def encode(batch: Batch) -> Batch:
        """The evidence's words as numbers, and the contexts' words that occur in their evidence."""
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


@cache
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


def _kernels() -> Any:
    """The compiled functions, imported on first use since importing numba is slow."""
    from ragauge.measures import _kernels

    return _kernels


def _cores() -> int:
    """Number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _check(evidence: Sequence[Sequence[str]], contexts: Sequence[str], ends: Sequence[np.ndarray]) -> None:
    if not len(evidence) == len(contexts) == len(ends):
        raise ValueError(f"{len(evidence)} lists of evidence, {len(contexts)} contexts and {len(ends)} arrays of ends")
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *ends])
    owner = np.repeat(np.arange(len(ends)), [len(of_context) for of_context in ends])
    lengths = np.array([len(context) for context in contexts], dtype=np.int64)[owner]
    falls = (np.diff(flat) < 0) & (np.diff(owner) == 0)
    if falls.any() or (flat < 0).any() or (flat > lengths).any():
        raise ValueError("ends must rise from 0 to the length of their context")


def _batch_bounds(contexts: Sequence[str], threads: int) -> list[tuple[int, int]]:
    """Ranges of contexts with about equal numbers of characters, at least one per thread."""
    if not contexts:
        return []
    read = np.cumsum([len(context) for context in contexts])
    batch = read // max(1, min(_BATCH_CHARS, -(-int(read[-1]) // threads)))
    cuts = np.flatnonzero(np.diff(batch)) + 1
    return list(zip([0, *cuts.tolist()], [*cuts.tolist(), len(contexts)], strict=True))
