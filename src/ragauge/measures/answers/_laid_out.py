"""Texts as numbers, one after the other in one array, as the compiled measures read them."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from ragauge.measures.answers._tokens import Tokens, WordByWord


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
    if isinstance(tokens, WordByWord):
        return _by_words(tokens, groups)
    numbers: dict[str, int] = {}
    read: dict[str, list[str]] = {}
    laid_out = []
    for group in groups:
        read |= {text: tokens(text) for text in group if text not in read}
        texts = [read[text] for text in group]
        flat = [numbers.setdefault(token, len(numbers)) for text in texts for token in text]
        laid_out.append(LaidOut(np.array(flat, dtype=np.int64), _at(texts)))
    return laid_out


class _Numbers(dict[Any, int]):
    """Whatever is asked for, numbered from 0 in the order in which it was asked for first."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


def _by_words(tokens: WordByWord, groups: Sequence[Sequence[str]]) -> list[LaidOut]:
    """`by_tokens` by way of numbered words, each of which is some tokens."""
    texts = tuple(chain.from_iterable(groups))
    words, flat, at = _words_of(texts)
    numbers = _Numbers()
    of_words = [[numbers[token] for token in tokens(word)] for word in words]
    if whole := [i for i, text in enumerate(texts) if tokens.as_a_whole(text)]:
        # Each is a word more.
        of_words += [[numbers[token] for token in tokens(texts[i])] for i in whole]
        each = np.split(flat, at[1:-1])
        for number, i in enumerate(whole, len(words)):
            each[i] = np.array([number])
        flat, at = np.concatenate(each), _at(each)
    symbols = np.fromiter(chain.from_iterable(of_words), dtype=np.int64)
    first = _at(of_words)
    sizes = np.diff(first)[flat]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    every = symbols[np.repeat(first[flat] - ends[:-1], sizes) + np.arange(ends[-1])]
    bounds = ends[at]
    laid_out, start = [], 0
    for group in groups:
        own = bounds[start : start + len(group) + 1]
        laid_out.append(LaidOut(every[own[0] : own[-1]], own - own[0]))
        start += len(group)
    return laid_out


@lru_cache(maxsize=1)  # several measures read the same texts one after the other
def _words_of(texts: tuple[str, ...]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The distinct words, their numbers in text after text, and where each text begins."""
    words = _Numbers()
    distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    read = [[words[word] for word in text.split()] for text in distinct]
    of_texts = [read[distinct[text]] for text in texts]
    return list(words), np.fromiter(chain.from_iterable(of_texts), dtype=np.int64), _at(of_texts)


def places(texts: LaidOut, others: LaidOut) -> np.ndarray:
    """int64 [pairs]: where the other text of a pair stands in the first one for the first time, whole and in
    one piece; -1 where it does not.
    """
    found = np.full(len(texts.sizes), -1, dtype=np.int64)
    own, other = texts.symbols.tolist(), others.symbols.tolist()
    at, other_at = texts.at.tolist(), others.at.tolist()
    for pair in np.flatnonzero(others.sizes <= texts.sizes).tolist():
        start, size = at[pair], other_at[pair + 1] - other_at[pair]
        wanted = other[other_at[pair] : other_at[pair + 1]]
        for place in range(at[pair + 1] - start - size + 1):
            if own[start + place : start + place + size] == wanted:
                found[pair] = place
                break
    return found


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
