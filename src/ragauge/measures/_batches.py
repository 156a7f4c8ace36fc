"""Texts as the flat arrays that the kernels read, and batches of them over threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from ragauge.errors import ConfigError, DataError
from ragauge.parts import runtime
from ragauge.progress import progress

NO_SYMBOL = 0xFFFFFFFF  # stands in no evidence: no code point, and more words than memory holds
_BATCH_CHARS = 200_000  # small enough for a core's cache, large enough that a call costs nothing against it


@dataclass(frozen=True)
class Batch:
    """Evidence parts and contexts as symbols (uint32), laid out as `_kernels` says; the others are int64."""

    parts: np.ndarray
    part_at: np.ndarray
    part_sizes: np.ndarray
    first_part: np.ndarray
    texts: np.ndarray
    text_at: np.ndarray
    ends: np.ndarray
    ends_at: np.ndarray
    cut: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What every matching kernel takes, in its order."""
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


def kernels() -> Any:
    """The compiled functions (`_kernels`), imported on first use since numba takes its time."""
    from ragauge.measures import _kernels

    return _kernels


def code_points(text: str) -> np.ndarray:
    """uint32 [len(text)]; lone surrogates are code points like others."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).copy()


def offsets(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """int64 [len(lengths) + 1]: where items of these lengths begin when laid one after the other."""
    at = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=at[1:])
    return at


def character_batch(
    evidence: Sequence[Sequence[str]], contexts: Sequence[str], ends: Sequence[np.ndarray]
) -> Batch:
    """The batch whose symbols are the characters (code points), the evidence's white space folded."""
    parts = list(chain.from_iterable(evidence))
    part_sizes = np.array([len(part) for part in parts], dtype=np.int64)
    end_counts = [len(of_context) for of_context in ends]
    batch = Batch(
        parts=code_points("".join(parts)),
        part_at=offsets(part_sizes),
        part_sizes=part_sizes,
        first_part=offsets([len(topic) for topic in evidence]),
        texts=code_points("".join(contexts)),
        text_at=offsets([len(context) for context in contexts]),
        ends=np.concatenate(ends).astype(np.int64),
        ends_at=offsets(end_counts),
        cut=np.full(sum(end_counts), NO_SYMBOL, dtype=np.uint32),
    )
    kernels().fold(batch.parts, batch.part_at, batch.part_sizes, np.arange(len(parts) + 1))
    return batch


def fold_contexts(batch: Batch) -> None:
    """Folds the contexts of a `character_batch` in place; apart from its making, since it needs no lock."""
    kernels().fold(batch.texts, batch.text_at, batch.ends, batch.ends_at)


Encode = Callable[[Sequence[Sequence[str]], Sequence[str], Sequence[np.ndarray]], Batch]


@dataclass(frozen=True)
class BatchedMeasure:
    """A measure whose kernel takes many topics at a time, over `threads` threads (0: every core).

    A measure names itself, how texts become a batch, and the kernel that writes the matched symbols.
    """

    threads: int = runtime(0)
    name: ClassVar[str]
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_threads(self.threads)

    def score(self, evidence: Sequence[str], context: str, ends: np.ndarray) -> np.ndarray:
        """float64 [len(evidence), len(ends)] in [0, 1]: evidence i in context[:ends[j]].

        `ends` rise from 0 to len(context). Raises DataError on evidence that has nothing to match.
        """
        return self.score_all([evidence], [context], [ends])[0]

    def score_all(
        self, evidence: Sequence[Sequence[str]], contexts: Sequence[str], ends: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """`score` of every context with its own evidence and ends, over threads."""
        return score_batches(self.name, self.encode, self.match, evidence, contexts, ends, self.threads)

    @staticmethod
    def encode(
        evidence: Sequence[Sequence[str]], contexts: Sequence[str], ends: Sequence[np.ndarray]
    ) -> Batch:
        """The texts of a batch as symbols."""
        raise NotImplementedError

    @staticmethod
    def match(batch: Batch, out: np.ndarray) -> None:
        """Writes the matched symbols, context by context and part by part."""
        raise NotImplementedError


def score_batches(
    what: str,
    encode: Encode,
    match: Callable[[Batch, np.ndarray], None],
    evidence: Sequence[Sequence[str]],
    contexts: Sequence[str],
    ends: Sequence[np.ndarray],
    threads: int,
) -> list[np.ndarray]:
    """For every context float64 [its evidence parts, its ends]: matched symbols over the part's symbols.

    `match` writes the matched symbols of a batch, context by context and part by part. Raises ValueError on
    ends that do not rise within their context, DataError on evidence that has nothing to match.
    """
    _check(evidence, contexts, ends)

    def batches() -> Iterator[Batch]:
        for first, last in _batch_bounds(contexts):
            batch = encode(evidence[first:last], contexts[first:last], ends[first:last])
            if (batch.part_sizes == 0).any():
                nothing = list(chain.from_iterable(evidence[first:last]))[int(np.argmin(batch.part_sizes))]
                raise DataError(f"measure {what}: evidence {nothing!r} has nothing to match")
            yield batch

    found: list[np.ndarray] = []
    with progress(len(contexts), f"score {what}", "context") as bar:
        for of_batch in _scored(batches(), match, threads or _cores()):
            found += of_batch
            bar.update(len(of_batch))
    return found


def _scored(
    batches: Iterator[Batch], match: Callable[[Batch, np.ndarray], None], threads: int
) -> Iterator[list[np.ndarray]]:
    """The scores of every batch, in order. Texts are laid out by the calling thread, which has to hold the
    interpreter's lock for that; the kernels need none, and run beside it in as many threads."""
    if threads == 1:
        yield from (_score(batch, match) for batch in batches)
        return
    waiting: deque[Future[list[np.ndarray]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for batch in batches:
            waiting.append(pool.submit(_score, batch, match))
            if len(waiting) > 2 * threads:  # so that few batches lie in memory
                yield waiting.popleft().result()
        yield from (future.result() for future in waiting)


def _score(batch: Batch, match: Callable[[Batch, np.ndarray], None]) -> list[np.ndarray]:
    part_counts, end_counts = np.diff(batch.first_part), np.diff(batch.ends_at)
    out = np.empty(int(part_counts @ end_counts))
    match(batch, out)
    out /= np.repeat(batch.part_sizes, np.repeat(end_counts, part_counts))
    pieces = np.split(out, np.cumsum(part_counts * end_counts)[:-1])
    shapes = zip(part_counts.tolist(), end_counts.tolist(), strict=True)
    return [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]


def _cores() -> int:
    """The cores that this process may use, where the system says so."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def check_threads(threads: int) -> None:
    """Raises ConfigError unless the number can be one of threads."""
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 0:
        raise ConfigError(f"measure.threads={threads!r}: a whole number from 0 (every core) up is allowed")


def _check(evidence: Sequence[Sequence[str]], contexts: Sequence[str], ends: Sequence[np.ndarray]) -> None:
    if not len(evidence) == len(contexts) == len(ends):
        raise ValueError(
            f"{len(evidence)} lists of evidence, {len(contexts)} contexts and {len(ends)} arrays of ends"
        )
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *ends])
    owner = np.repeat(np.arange(len(ends)), [len(of_context) for of_context in ends])
    lengths = np.array([len(context) for context in contexts], dtype=np.int64)[owner]
    falls = (np.diff(flat) < 0) & (np.diff(owner) == 0)
    if falls.any() or (flat < 0).any() or (flat > lengths).any():
        raise ValueError("ends must rise from 0 to the length of their context")


def _batch_bounds(contexts: Sequence[str]) -> list[tuple[int, int]]:
    """Ranges of contexts with about as many characters each."""
    if not contexts:
        return []
    batch = np.cumsum([len(context) for context in contexts]) // _BATCH_CHARS
    cuts = np.flatnonzero(np.diff(batch)) + 1
    return list(zip([0, *cuts.tolist()], [*cuts.tolist(), len(contexts)], strict=True))
