"""Questions that repeat another: with the same words, or with nearby embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ragauge.contract.component import Embedder
from ragauge.plugins.synthesis.drafts import PASSED, Draft
from ragauge.texts.words import words


class Known:
    """The questions that a new one may not repeat.

    cosine: from which on two questions are the same; None: only those of the same words, in any order.
    """

    def __init__(self, embedder: Embedder, cosine: float | None) -> None:
        self._embedder = embedder
        self._cosine = cosine
        self._by_words: dict[tuple[str, ...], str] = {}
        self._names: list[str] = []
        self._vectors = np.empty((0, 0), dtype=np.float32)  # rows beyond the names are room for more

    def add(self, named: Sequence[tuple[str, str]]) -> None:
        """Adds questions, each with its name in reports."""
        if not named:
            return
        for name, question in named:
            if key := _words(question):
                self._by_words.setdefault(key, name)
        if self._cosine is not None:
            self._grow(self._embed([question for _, question in named]))
        self._names += [name for name, _ in named]

    def _grow(self, vectors: np.ndarray) -> None:
        n, needed = len(self._names), len(self._names) + len(vectors)
        if needed > len(self._vectors):
            room = np.empty((2 * needed, vectors.shape[1]), dtype=np.float32)
            room[:n] = self._vectors[:n] if n else 0
            self._vectors = room
        self._vectors[n:needed] = vectors

    def check(self, drafts: Sequence[Draft]) -> None:
        """Rejects drafts that repeat a known question; records which, and the cosine of the nearest."""
        if not drafts:
            return
        nearest = self._nearest([draft.question for draft in drafts])
        for i, draft in enumerate(drafts):
            name, cosine = ("", None) if nearest is None else (self._names[nearest[0][i]], nearest[1][i])
            if cosine is not None:
                draft.results["nearest_cosine"] = round(float(cosine), 4)
            same = self._by_words.get(_words(draft.question))
            near = cosine is not None and self._cosine is not None and cosine >= self._cosine
            if same is not None or near:
                draft.reject("duplicate")
                draft.results["duplicate_of"] = same if same is not None else name
            else:
                draft.results["duplicate"] = PASSED

    def _nearest(self, questions: Sequence[str]) -> tuple[np.ndarray, np.ndarray] | None:
        if self._cosine is None or not self._names:
            return None
        cosine = self._embed(questions) @ self._vectors[: len(self._names)].T
        best = cosine.argmax(axis=1)
        return best, cosine[np.arange(len(questions)), best]

    def _embed(self, questions: Sequence[str]) -> np.ndarray:
        return self._embedder.embed(list(questions), role="query")


def _words(question: str) -> tuple[str, ...]:
    return tuple(sorted(words(question)))
