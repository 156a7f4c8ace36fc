"""Where a quoted sentence stands in a text."""

from __future__ import annotations

import re

from ragauge.texts.words import words


def find_sentence(sentence: str, text: str) -> tuple[int, int] | None:
    """Where a sentence stands in a text, any white space for any; None for one of fewer than three words."""
    if len(words(sentence)) < 3:
        return None
    match = re.search(r"\s+".join(map(re.escape, sentence.split())), text)
    return None if match is None else match.span()
