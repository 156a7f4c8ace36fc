"""Names and values as the messages and notes of a comparison say them."""

from __future__ import annotations

from collections.abc import Sequence

MAX_NAMED = 5  # runs named in a message


def some(names: Sequence[str]) -> str:
    """The first five names, and how many more there are."""
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def short(value: object, width: int = 24) -> str:
    """A value on one line, cut to `width` characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= width else text[: width - 1] + "…"
