"""Locates a quoted sentence in a text."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

from ragauge.texts.words import words


def find_sentence(sentence: str, text: str) -> tuple[int, int] | None:
    """Span of a sentence in a text, ignoring differences in white space; None if absent or shorter than three words."""
    if len(words(sentence)) < 3:
        return None
    parts = [match.span() for match in re.finditer(r"\S+", text)]
    wanted = " ".join(sentence.split())
    at = " ".join(text[start:end] for start, end in parts).find(wanted)
    if at < 0:
        return None
    # Where each part begins once white space is one space.
    begins = list(accumulate((end - start + 1 for start, end in parts[:-1]), initial=0))

    def place(folded: int) -> int:
        number = bisect_right(begins, folded) - 1
        return parts[number][0] + folded - begins[number]

    return place(at), place(at + len(wanted) - 1) + 1
