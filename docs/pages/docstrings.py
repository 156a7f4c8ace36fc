"""Docstrings as Markdown: what is said of parameters and fields ("text: what came back") becomes a list."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))

from lists import spaced

_NAMES = r"(?P<names>\w+(?:(?:, | and )\w+)*): "
_ABOUT = re.compile(f"^{_NAMES}")
_ABOUT_WITHIN = re.compile(f"(?<=[.;)]) {_NAMES}")
_CODE = re.compile(r"(`[^`]+`)")


class NamedLines(griffe.Extension):
    """Sets each line that begins with names of parameters or fields and a colon as an item of a list."""

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Rewrites the docstring of a class."""
        if cls.docstring:
            cls.docstring.value = as_markdown(cls.docstring.value, set(cls.members))

    def on_function_instance(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Rewrites the docstring of a function."""
        if func.docstring:
            func.docstring.value = as_markdown(func.docstring.value, {p.name for p in func.parameters})


def as_markdown(text: str, names: set[str]) -> str:
    """The text, with an item for what is said of each of these names; a <name> in it is no tag of HTML."""

    def known(about: re.Match[str]) -> bool:
        return set(re.split(r", | and ", about["names"])) <= names

    text = _ABOUT_WITHIN.sub(lambda about: "\n" + about[0].lstrip() if known(about) else about[0], text)
    lines: list[str] = []
    listed = False
    for line in text.split("\n"):
        about = _ABOUT.match(line)
        if not line.startswith("    "):
            line = "".join(part if i % 2 else part.replace("<", "&lt;") for i, part in enumerate(_CODE.split(line)))
        if about and known(about):
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
