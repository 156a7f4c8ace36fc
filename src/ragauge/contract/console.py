"""Tables on the console, laid out by rich: as wide as their content unless a terminal bounds it."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Collection, Sequence
from typing import Literal

from ragauge.contract.visible import visible

_UNBOUNDED = 100_000  # columns of what is no terminal: a log file, a pipe


def table(rows: Sequence[Sequence[str]], right: Collection[int] = (), indent: str = "", gap: int = 2) -> str:
    """The rows as lines of text without colours, columns `gap` spaces apart, those at `right` to the right.

    On a terminal too narrow for the table cells are folded; anywhere else (a log file, a pipe) each row is
    one line, however long. Cells are taken literally, but for control characters, which
    show as symbols; wide characters take two columns.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return ""
    width = _width() - len(indent)
    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, gap, 0, 0))
    for at in range(len(rows[0])):
        justify: Literal["left", "right"] = "right" if at in right else "left"
        grid.add_column(justify=justify, overflow="fold", no_wrap=width >= _UNBOUNDED - len(indent))
    for row in rows:
        grid.add_row(*(Text(visible(cell, one_line=True)) for cell in row))
    out = io.StringIO()
    # Given in full, so that no variable of the environment (COLUMNS, FORCE_COLOR) has a say.
    console = Console(file=out, width=max(width, 20), color_system=None, force_terminal=False, force_jupyter=False)
    console.print(grid, crop=False)
    return "\n".join(f"{indent}{line}".rstrip() for line in out.getvalue().splitlines())


_BEST = re.compile(r"(?<!\S)\S+\*")  # a value with the mark of the best
_BOLD, _GREEN, _PLAIN = "\x1b[1m", "\x1b[32m", "\x1b[0m"


def coloured(text: str) -> str:
    """The text with its first line bold and values that end in * green; as it is where there are no colours.

    There are some on a terminal unless NO_COLOR (no-color.org) or TERM=dumb is set. The columns stay
    where they are.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not _is_terminal():
        return text
    lines = text.split("\n")
    first = next((at for at, line in enumerate(lines) if line.strip()), None)
    return "\n".join(
        f"{_BOLD}{line}{_PLAIN}" if at == first else _BEST.sub(f"{_GREEN}\\g<0>{_PLAIN}", line)
        for at, line in enumerate(lines)
    )


def _is_terminal() -> bool:
    """Whether standard output is one."""
    try:
        return sys.stdout.isatty()
    except (ValueError, AttributeError):  # closed, or a stand-in for it
        return False


def _width() -> int:
    """Columns of the terminal that standard output is; without bounds where it is none."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else _UNBOUNDED
    except (OSError, ValueError, AttributeError):  # a stand-in for standard output
        return _UNBOUNDED
