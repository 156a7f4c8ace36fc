"""Lone surrogates: halves of a character, such as a cut reply or JSON escapes leave, that UTF-8 cannot hold."""

from __future__ import annotations

import re

_LONE = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str) -> str:
    """The text with each lone surrogate as U+FFFD, the replacement character.

    Two halves that stand side by side, as a stream that was cut between them leaves, become their character.
    """
    if text.isascii() or not _LONE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
