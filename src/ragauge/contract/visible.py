"""Makes untrusted texts harmless on terminals, pages and in spreadsheets; and tables."""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import unicodedata
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd


# Control characters but for line ends and tabs; what turns the direction of writing; line ends of Unicode.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# Letters, marks and signs that show nothing: fillers of Hangul, the blank of Braille, joiners and selectors.
_UNSEEN = "\u034f\u115f\u1160\u2800\u3164\ufe0e\ufe0f\uffa0"
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # in full width, too
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def visible(value: object, one_line: bool = False) -> str:
    """The text with control characters as symbols (␀, ␛) and bidirectional controls by name (⟦U+202E⟧).

    Tabs and line ends stay; with `one_line` they and runs of spaces become one space. Lone surrogates, which have no
    UTF-8, become names such as ⟦U+D800⟧.
    """
    text = str(value)
    if one_line:
        text = " ".join(re.split(r"[ \t\r\n\v\f\x1c-\x1f\x85\u2028\u2029]+", text)).strip()
    return _HIDDEN.sub(_shown, text.replace("\r\n", "\n"))


def is_blank(text: str) -> bool:
    """True if the text holds white space, zero-width and control characters alone."""
    return all(c in _UNSEEN or unicodedata.category(c) in ("Zs", "Zl", "Zp", "Cc", "Cf") for c in text)


def _shown(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟦U+{code:04X}⟧"


def time_text(seconds: float) -> str:
    """A time to the minute, in the local time zone."""
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


class Formatter(logging.Formatter):
    """Log lines for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """The line or lines of a record, made visible."""
        return visible(super().format(record))


class OnTerminal(logging.Filter):
    """Keeps lines for the log file alone, logged with `extra=IN_FILE`, from a terminal."""

    def filter(self, record: logging.LogRecord) -> bool:
        """False for a line for the file."""
        return not hasattr(record, "in_file")


IN_FILE = {"in_file": True}


def spreadsheet_cell(value: Any) -> Any:
    """A text that a spreadsheet would calculate gets an apostrophe before it; all else stays."""
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def from_spreadsheet(cell: str) -> str:
    """The inverse of `spreadsheet_cell`."""
    return cell[1:] if cell[:1] == "'" and spreadsheet_cell(cell[1:]) == cell else cell


def sheet_text(frame: pd.DataFrame) -> str:
    """The frame as CSV for reading back: no cell is a formula, and nothing else changes."""
    return str(frame.map(spreadsheet_cell).to_csv(index=False, lineterminator="\n"))


def csv_text(frame: pd.DataFrame) -> str:
    """The frame as CSV for people: a text is one line, control characters are shown, no cell is a formula."""
    from pandas.api.types import is_numeric_dtype  # here: --help does without pandas

    safe = frame.copy()
    for at in range(frame.shape[1]):
        if not is_numeric_dtype(frame.dtypes.iloc[at]):
            safe.isetitem(at, frame.iloc[:, at].map(_cell, na_action="ignore").array)
    safe.columns = [_cell(name) for name in frame.columns]  # type: ignore[assignment]
    return str(safe.to_csv(index=False, lineterminator="\n"))


def _cell(value: Any) -> Any:
    return spreadsheet_cell(visible(value, one_line=True)) if isinstance(value, str) else value


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
    """The text with its first line bold and values ending in * green; unchanged without colours.

    A terminal has colours unless NO_COLOR (no-color.org) or TERM=dumb is set. Columns keep their positions.
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
    """Width of stdout's terminal in columns; unbounded without a terminal."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else _UNBOUNDED
    except (OSError, ValueError, AttributeError):  # a stand-in for standard output
        return _UNBOUNDED
