"""Texts of corpora, models and people, for a terminal, a page or a spreadsheet: shown, never obeyed."""

from __future__ import annotations

import logging
import re
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# Control characters but for line ends and tabs; what turns the direction of writing; line ends of Unicode.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# Letters, marks and signs that show nothing: fillers of Hangul, the blank of Braille, joiners and selectors.
_UNSEEN = "\u034f\u115f\u1160\u2800\u3164\ufe0e\ufe0f\uffa0"
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # in full width, too
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def visible(value: object, one_line: bool = False) -> str:
    """The text with control characters as symbols (␀, ␛) and bidirectional controls by name (⟦U+202E⟧).

    Tabs and line ends stay; with `one_line` they and runs of spaces become one space. Lone surrogates, which
    have no UTF-8, become ⟦U+D800⟧ and the like.
    """
    text = str(value)
    if one_line:
        text = " ".join(re.split(r"[ \t\r\n\v\f\x1c-\x1f\x85\u2028\u2029]+", text)).strip()
    return _HIDDEN.sub(_shown, text.replace("\r\n", "\n"))


def is_blank(text: str) -> bool:
    """True if nothing of the text can be seen: white space, zero-width and control characters alone."""
    return all(c in _UNSEEN or unicodedata.category(c) in ("Zs", "Zl", "Zp", "Cc", "Cf") for c in text)


def _shown(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟦U+{code:04X}⟧"


class Formatter(logging.Formatter):
    """Log lines for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """The line or lines of a record, made visible."""
        return visible(super().format(record))


def spreadsheet_cell(value: Any) -> Any:
    """A text that a spreadsheet would calculate gets an apostrophe before it; all else stays."""
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def csv_text(frame: pd.DataFrame, index: bool = False) -> str:
    """The frame as CSV for people: a text is one line, control characters are shown, no cell is a formula."""
    from pandas.api.types import is_numeric_dtype  # here: --help does without pandas

    if index:
        frame = frame.reset_index(names=frame.index.name or "")
    safe = frame.copy()
    for at in range(frame.shape[1]):
        if not is_numeric_dtype(frame.dtypes.iloc[at]):
            safe.isetitem(at, frame.iloc[:, at].map(_cell, na_action="ignore").array)
    safe.columns = [_cell(name) for name in frame.columns]  # type: ignore[assignment]
    return str(safe.to_csv(index=False, lineterminator="\n"))


def _cell(value: Any) -> Any:
    return spreadsheet_cell(visible(value, one_line=True)) if isinstance(value, str) else value
