"""Texts as numbers, one after the other in one array, as the compiled measures read them."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass

import numpy as np

from ragauge.measures.answers._tokens import Tokens


@dataclass(frozen=True)
class LaidOut:
    """Text i is symbols[at[i] : at[i + 1]]; int64, equal symbols are equal tokens or characters."""

    symbols: np.ndarray
    at: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """int64 [texts]: how many symbols each has."""
        return np.diff(self.at)


def by_tokens(tokens: Tokens, *groups: Sequence[str]) -> list[LaidOut]:
    """The texts of each group as tokens, numbered alike in all groups; every distinct text is read once."""
    numbers: dict[str, int] = {}
    read: dict[str, list[str]] = {}
    laid_out = []
    for group in groups:
        read |= {text: tokens(text) for text in group if text not in read}
        texts = [read[text] for text in group]
        flat = [numbers.setdefault(token, len(numbers)) for text in texts for token in text]
        laid_out.append(LaidOut(np.array(flat, dtype=np.int64), _at(texts)))
    return laid_out


def by_characters(*groups: Sequence[str]) -> list[LaidOut]:
    """The texts of each group as code points."""
    return [_joined([_code_points(text) for text in group]) for group in groups]


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.int64)


def _joined(texts: Sequence[np.ndarray]) -> LaidOut:
    return LaidOut(np.concatenate(texts) if texts else np.zeros(0, np.int64), _at(texts))


def _at(texts: Sequence[Sized]) -> np.ndarray:
    """Where each text begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
