"""Where a quoted sentence stands in a text."""

from __future__ import annotations

import pytest

from ragauge.texts.quotes import find_sentence

TEXT = "A town.\nIts bridge  is (very) old. The end  is near"


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("Its bridge is (very) old.", "Its bridge  is (very) old."),
        (" Its\tbridge is ", "Its bridge  is"),
        ("A town. Its", "A town.\nIts"),
        ("end is near", "end  is near"),
        ("his is near", None),
        ("its bridge is (very) old.", None),
        ("Its bridge is very old.", None),
        ("A town.", None),  # two words could stand anywhere
        ("", None),
    ],
)
def test_a_quote_stands_character_by_character_white_space_aside(sentence: str, found: str | None) -> None:
    at = find_sentence(sentence, TEXT)
    assert (None if at is None else TEXT[slice(*at)]) == found
