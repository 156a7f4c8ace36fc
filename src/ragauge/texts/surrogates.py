"""Lone surrogates: halves of a character, such as a cut reply or JSON escapes leave, that UTF-8 cannot hold."""

from __future__ import annotations

import re

_LONE = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str) -> str:
    """The text with each lone surrogate as U+FFFD, the replacement character."""
    return text if text.isascii() else _LONE.sub("\ufffd", text)
