"""Lone surrogates: half characters from cut replies or JSON escapes, which UTF-8 cannot hold."""

from __future__ import annotations

import re

_LONE = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str) -> str:
    """The text with each lone surrogate as U+FFFD, the replacement character.

    Two adjacent halves, as from a stream cut between them, become their character.
    """
    if text.isascii() or not _LONE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
