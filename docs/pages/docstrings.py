"""Docstrings as Markdown: lines such as "text: what came back" about parameters and fields become a list."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))

from lists import spaced

_ABOUT = re.compile(r"^(?P<names>\w+(?:(?:, | and )\w+)*): ")


class NamedLines(griffe.Extension):
    """Sets each line that begins with names of parameters or fields and a colon as an item of a list."""

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Rewrites the docstring of a class."""
        if cls.docstring:
            cls.docstring.value = as_list(cls.docstring.value, set(cls.members))

    def on_function_instance(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Rewrites the docstring of a function."""
        if func.docstring:
            func.docstring.value = as_list(func.docstring.value, {p.name for p in func.parameters})


def as_list(text: str, names: set[str]) -> str:
    """The text, in which lines about these names are items, each with the lines that go on below it."""
    lines: list[str] = []
    listed = False
    for line in text.split("\n"):
        about = _ABOUT.match(line)
        if about and set(re.split(r", | and ", about["names"])) <= names:
            if lines and lines[-1].strip() and not listed:
                lines.append("")
            said = ", ".join(f"`{name}`" for name in re.split(r", | and ", about["names"]))
            lines.append(f"- {said}: {line[about.end() :]}")
            listed = True
        elif listed and line.strip():
            lines.append(f"  {line.strip()}")
        else:
            lines.append(line)
            listed = False
    return spaced("\n".join(lines))
