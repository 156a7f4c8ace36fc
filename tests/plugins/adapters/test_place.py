"""Pieces of foreign splitters are found in their text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.plugins.adapters.place import place


@pytest.mark.parametrize(
    ("text", "pieces", "expected"),
    [
        ("one two", ["one", "two"], [(0, 3), (4, 7)]),
        ("aaaaaa", ["aa", "aa", "aa"], [(0, 2), (2, 4), (4, 6)]),
        ("ab ab ab ab", ["ab ab", "ab ab", "ab ab"], [(0, 5), (3, 8), (6, 11)]),
        ("x y x z", ["x z"], [(4, 7)]),
        ("the cat. the end", ["the", "cat.", "the", "end"], [(0, 3), (4, 8), (9, 12), (13, 16)]),
        ("a \n\n b  c", ["a\n\nb", "c"], [(0, 6), (8, 9)]),  # white space is the splitter's own
        ("Café ﬁne", ["cafe", "fine"], [(0, 4), (5, 8)]),  # lower case, no accents, no ligatures
        ("go 😀 on", ["go \ufffd", "\ufffd on"], [(0, 4), (3, 7)]),  # a character cut in the middle
        ("a b", ["", "a", " ", "b"], [(0, 1), (2, 3)]),
        ("abc", [], []),
    ],
)
def test_places_worked_out_by_hand(text: str, pieces: list[str], expected: list[tuple[int, int]]) -> None:
    assert place(text, pieces) == expected


@pytest.mark.parametrize(
    ("text", "pieces", "missing"),
    [("one two", ["one", "three"], "three"), ("one two", ["two", "one"], "one"), ("a", ["a", "a"], "a")],
)
def test_a_piece_that_is_not_there_is_named(text: str, pieces: list[str], missing: str) -> None:
    with pytest.raises(ValueError, match=f"^{missing}$"):
        place(text, pieces)


@given(st.text("ab \n", max_size=30), st.lists(st.integers(1, 6), max_size=8))
def test_pieces_that_cut_a_text_cover_it_again(text: str, sizes: list[int]) -> None:
    pieces, at = [], 0
    for size in [*sizes, len(text) + 1]:
        pieces.append(text[at : at + size])
        at += size
    spans = place(text, pieces)
    kept = [piece for piece in pieces if piece.strip()]
    squeezed = ["".join(text[start:end].split()) for start, end in spans]
    assert squeezed == ["".join(piece.split()) for piece in kept]
    assert "".join(squeezed) == "".join(text.split())
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
