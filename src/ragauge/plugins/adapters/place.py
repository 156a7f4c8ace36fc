"""Finds the pieces of a foreign splitter in their source text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

_BLACK = re.compile(r"\S+")
_BROKEN = "\ufffd"  # what half a character decodes to, where tokens are bytes
_CANDIDATES = 64  # places at most that are tried for one piece


def place(text: str, pieces: Sequence[str]) -> list[tuple[int, int]]:
    """First and past-the-end character in `text` of every piece; ValueError(piece) for an absent one.

    White space does not count, so that a splitter may strip, join or normalise it. Where a piece is not found letter by
    letter, case, accents and compatibility forms do not count either. A piece begins behind the beginning of the one
    before it and may overlap it. Where pieces occur several times, the places are taken that leave the fewest
    characters in no piece and, among them, overlap least.
    """
    wanted = [piece for piece in pieces if piece.strip().strip(_BROKEN)]
    try:
        return _place(*_letters(text), [_letters(piece)[0] for piece in wanted])
    except _Missing:
        pass
    try:
        return _place(*_folded(text), [_folded(piece)[0] for piece in wanted])
    except _Missing as missing:
        raise ValueError(wanted[missing.at]) from None


class _Missing(Exception):
    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def _letters(text: str) -> tuple[str, np.ndarray]:
    """The text without white space, and the position of each character."""
    spans = [match.span() for match in _BLACK.finditer(text)]
    at = np.concatenate([np.arange(*span) for span in spans]) if spans else np.empty(0, dtype=np.int64)
    return "".join(text[start:end] for start, end in spans), at


def _folded(text: str) -> tuple[str, np.ndarray]:
    """The letters without case, accents and compatibility forms, and the origin of each."""
    folded = [unicodedata.normalize("NFKD", char).casefold() for char in text]
    kept = ["".join(c for c in chars if not (unicodedata.combining(c) or c.isspace())) for chars in folded]
    return "".join(kept), np.repeat(np.arange(len(text)), [len(chars) for chars in kept])


def _place(letters: str, at: np.ndarray, pieces: Sequence[str]) -> list[tuple[int, int]]:
    """The cheapest places by dynamic programming; cost is (letters left out before the piece, overlap)."""
    # Per piece: (first letter, past the last, cost of the best way here, which place of the piece before).
    steps: list[list[tuple[int, int, tuple[int, int], int]]] = [[(-1, 0, (0, 0), -1)]]
    for number, piece in enumerate(pieces):
        whole = piece.strip(_BROKEN)
        cut = piece.startswith(_BROKEN), piece.endswith(_BROKEN)
        before = steps[-1]
        found: list[tuple[int, int, tuple[int, int], int]] = []
        begin = letters.find(whole, before[0][0] + 1)
        while begin >= 0 and len(found) < _CANDIDATES:
            # Half a character counts as all of it.
            start, end = max(0, begin - cut[0]), min(len(letters), begin + len(whole) + cut[1])
            ways = [
                ((gap + max(0, start - e), overlap + max(0, e - start)), i)
                for i, (s, e, (gap, overlap), _) in enumerate(before)
                if s < start or (s == start and e < end)
            ]
            if ways:
                found.append((start, end, *min(ways)))
            begin = letters.find(whole, begin + 1)
        if not found:
            raise _Missing(number)
        steps.append(found)
    # What is left out behind the last piece counts, too.
    last = steps[-1]
    best = min(range(len(last)), key=lambda i: (last[i][2][0] + len(letters) - last[i][1], last[i][2][1]))
    spans = []
    for step in reversed(steps[1:]):
        start, end, _, before_it = step[best]
        spans.append((int(at[start]), int(at[end - 1]) + 1))
        best = before_it
    return spans[::-1]
