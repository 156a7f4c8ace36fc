"""Lists as other readers of Markdown take them: Python-Markdown wants a blank line before the first item."""

from __future__ import annotations

import re

FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"(- |\d+\. )")


def spaced(text: str) -> str:
    """The text with a blank line before each list that follows a line of prose."""
    lines: list[str] = []
    fenced, listed = False, False
    for line in text.split("\n"):
        if FENCE.match(line):
            fenced = not fenced
        item = not fenced and _ITEM.match(line)
        if item and lines and lines[-1].strip() and not listed:
            lines.append("")
        listed = bool(item) or (listed and bool(line.strip()))
        lines.append(line)
    return "\n".join(lines)
