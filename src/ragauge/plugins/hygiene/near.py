"""Near duplicates among texts, by an exact join of their word 5-grams.

All sets are sorted in one order, rare members first. Two sets with a Jaccard similarity of t or more then share a
member among the first n - ceil(t n) + 1 of each. Only texts that share such a member are compared.
Source: Bayardo, Ma and Srikant, Scaling Up All Pairs Similarity Search, WWW 2007, section 3.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ragauge.measures.tokens import offsets
from ragauge.texts.words import words

SIZE = 5  # words of a shingle
THRESHOLD = 0.8
_BLOCK = 1_000_000  # words whose shingles are in memory at a time
_BASE = np.uint64(0x9E3779B97F4A7C15)
_LEAST_BITS, _MOST_BITS = 10, 24  # of the table of frequencies


class Near(NamedTuple):
    """Two texts by their places, first < second, and the Jaccard similarity of their word 5-grams, in [0.8, 1]."""

    first: int
    second: int
    jaccard: float


def near_pairs(texts: Iterable[str], known: int = 0) -> list[Near]:
    """Pairs of near duplicates, sorted by `second`; each joins two groups that no earlier pair has joined.

    Texts that a chain of pairs connects are one group, and a group of n texts has n - 1 pairs. So every text that is
    `second` repeats another one. Texts of the same words in the same order have similarity 1. Others are near from
    THRESHOLD on. A text of fewer than five words is a single shingle, and a text without words repeats none.

    known: the first `known` texts are compared with the others alone. Then each of the others is in one pair at most,
    with a known text as `first`. Memory is 4 bytes a word, and about 12 bytes for each fifth shingle.
    """
    shingles = _Shingles(texts)
    places = shingles.places
    n_known = int(np.searchsorted(places, known))  # distinct texts among the known ones
    joined = list(_joined(shingles, n_known))
    if not known:
        found = [Near(places[a], places[b], jaccard) for a, b, jaccard in joined]
        found += [Near(places[row], place, 1.0) for place, row in shingles.first_of]
        return sorted(found, key=lambda pair: pair.second)
    known_of = {row: (row, 1.0) for row in range(n_known)} | {b: (a, jaccard) for a, b, jaccard in joined}
    rest = [*((place, row) for row, place in enumerate(places)), *shingles.first_of]
    return [
        Near(places[known_of[row][0]], place, known_of[row][1])
        for place, row in sorted(rest)
        if place >= known and row in known_of
    ]


class _Shingles:
    """The word 5-grams of the distinct texts.

    places: the place of each distinct text among all. first_of: (place, row among the distinct texts) of each text
    that has the words of an earlier one.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        numbers: dict[str, int] = {"": 0}  # fills texts of fewer than five words up
        rows: dict[bytes, int] = {}
        flat, sizes = array("i"), array("q")
        self.places: list[int] = []
        self.first_of: list[tuple[int, int]] = []
        for place, text in enumerate(texts):
            found = array("i", [numbers.setdefault(word, len(numbers)) for word in words(text)])
            if not found:
                continue
            row = rows.setdefault(hashlib.blake2b(found.tobytes(), digest_size=16).digest(), len(rows))
            if row < len(self.places):
                self.first_of.append((place, row))
                continue
            self.places.append(place)
            found.extend([0] * (SIZE - len(found)))
            flat.extend(found)
            sizes.append(len(found))
        self._words = np.array(flat, dtype=np.int32)
        self._at = offsets(np.array(sizes, dtype=np.int64))
        self._values = np.random.default_rng(0).integers(1 << 64, size=len(numbers), dtype=np.uint64)

    def __len__(self) -> int:
        return len(self.places)

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """`of` for blocks of about a million words."""
        first = 0
        while first < len(self):
            last = max(first + 1, int(np.searchsorted(self._at, self._at[first] + _BLOCK, side="right")) - 1)
            yield self.of(first, last)
            first = last

    def of(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Row and hash of every distinct shingle of texts first to last - 1, sorted by row and hash."""
        values = self._values[self._words[self._at[first] : self._at[last]]]
        row = np.repeat(np.arange(first, last), np.diff(self._at[first : last + 1]))
        n = len(values) - SIZE + 1
        hashes = np.zeros(n, dtype=np.uint64)
        for k in range(SIZE):
            hashes = hashes * _BASE + values[k : k + n]
        inside = row[:n] == row[SIZE - 1 :]
        row, hashes = row[:n][inside], hashes[inside]
        order = np.lexsort((hashes, row))
        row, hashes = row[order], hashes[order]
        new = np.ones(len(row), dtype=bool)
        new[1:] = (row[1:] != row[:-1]) | (hashes[1:] != hashes[:-1])
        return row[new], hashes[new]


def _joined(shingles: _Shingles, known: int) -> Iterator[tuple[int, int, float]]:
    """Rows and similarity of pairs that join two groups; the first `known` rows are one group from the start."""
    row, group, sizes = _prefixes(shingles)
    n, lag = len(shingles), 1
    parent = np.arange(n)
    parent[:known] = 0
    while len(row) > lag:
        label = _roots(parent)
        starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
        there = np.diff(np.r_[starts, len(row)])
        apart = np.minimum.reduceat(label[row], starts) < np.maximum.reduceat(label[row], starts)
        kept = np.repeat(apart & (there > lag), there)
        row, group = row[kept], group[kept]
        at = np.flatnonzero(group[lag:] == group[:-lag])
        first, second = row[at], row[at + lag]  # first < second: rows rise in a group
        few, many = np.minimum(sizes[first], sizes[second]), np.maximum(sizes[first], sizes[second])
        like = (label[first] != label[second]) & (few >= THRESHOLD * many - 1e-9)
        if known:
            like &= (first < known) & (second >= known)
        for pair in np.unique(first[like] * n + second[like]).tolist():
            a, b = divmod(pair, n)
            one, other = _root(parent, a), _root(parent, b)
            if one != other and (jaccard := _jaccard(shingles, a, b)) >= THRESHOLD:
                parent[max(one, other)] = min(one, other)
                yield a, b, jaccard
        lag += 1


def _root(parent: np.ndarray, row: int) -> int:
    while parent[row] != row:
        parent[row] = row = parent[parent[row]]
    return row


def _roots(parent: np.ndarray) -> np.ndarray:
    """The root of every row's group."""
    found = parent
    while (found != parent[found]).any():
        found = parent[found]
    return found


def _jaccard(shingles: _Shingles, first: int, second: int) -> float:
    one, other = shingles.of(first, first + 1)[1], shingles.of(second, second + 1)[1]
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / (len(one) + len(other) - shared)


def _prefixes(shingles: _Shingles) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row and hash of the rarest shingles of every text, sorted by hash and row; and the sizes of all texts' sets."""
    n_words = int(shingles._at[-1])
    bits = int(np.clip(np.ceil(np.log2(4 * n_words + 1)), _LEAST_BITS, _MOST_BITS))
    shift, counts = np.uint64(64 - bits), np.zeros(1 << bits, dtype=np.uint32)
    sizes = np.zeros(len(shingles), dtype=np.int64)
    for row, hashes in shingles.blocks():
        slots, there = np.unique(hashes >> shift, return_counts=True)
        counts[slots] += there.astype(np.uint32)
        sizes += np.bincount(row, minlength=len(sizes))
    starts = offsets(sizes)
    # Of floats that are not exact, 0.8 * 5 is a little more than 4.
    most = sizes - np.ceil(THRESHOLD * sizes - 1e-9).astype(np.int64) + 1
    rows, found = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.uint64)]
    for row, hashes in shingles.blocks():
        frequency = counts[hashes >> shift]
        order = np.lexsort((hashes, frequency, row))
        within = np.arange(len(row)) - (starts[row] - starts[row[:1]])
        kept = order[(within < most[row]) & (frequency[order] > 1)]
        rows.append(row[kept])
        found.append(hashes[kept])
    row, hashes = np.concatenate(rows), np.concatenate(found)
    order = np.lexsort((row, hashes))
    return row[order], hashes[order], sizes
