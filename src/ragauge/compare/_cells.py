"""Texts and numbers as cells: cleaned, measured in columns of a terminal, escaped and marked."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ragauge.contract.finding import Cell, Code, Grid, Num, Tagged, columns_of
from ragauge.contract.visible import visible
from ragauge.show.formats import written

NOTHING = "–"
ALPHA = 0.05
DIFFERS = "†"  # the tag of a number that differs from the baseline
_SPECS = {"score": ".3f", "signed": "+.3f"}

# A text of a corpus, model or person as one line that does nothing to a terminal.
clean = partial(visible, one_line=True)


def n_columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def pad(text: str, size: int, right: bool = False) -> str:
    """The text filled with blanks to `size` columns of a terminal; `right` puts the blanks before it."""
    blank = " " * max(0, size - n_columns(text))
    return blank + text if right else text + blank


def fit(text: str, width: int) -> str:
    """The text, or as much of it as fits with an ellipsis."""
    if n_columns(text) <= width:
        return text
    kept = text[: max(width - 1, 1)]
    while n_columns(kept) > max(width - 1, 1):
        kept = kept[:-1]
    return kept + "…"


@dataclass(frozen=True)
class Format:
    """How a format writes texts and marks numbers; templates take the number as `{}`."""

    escape: Callable[[str], str]
    best: str
    differs: str
    interval: str
    minus: str
    about_best: str
    padded: int = 0

    def text(self, value: object) -> str:
        """Any text, harmless in this format."""
        return self.escape(clean(value))

    def number(self, value: float, spec: str) -> str:
        """A number by its format specification; a dash for NaN."""
        return self.escape(NOTHING) if value != value else format(value, spec).replace("-", self.minus)

    def marked(self, value: float, spec: str, best: bool, differs: bool, lo: float, hi: float) -> str:
        """A number with its marks and its interval, where there is one."""
        number = self.number(value, spec)
        cell = (self.differs if differs else "{}").format(self.best.format(number) if best else number)
        cell = cell.ljust(len(number) + self.padded)
        if lo != lo or hi != hi:
            return cell
        return self.interval.format(cell, self.number(lo, spec), self.number(hi, spec))


@dataclass(frozen=True)
class Table:
    """Cells that are escaped for their format; the first `n_keys` columns are texts, the others numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_keys: int


def table_of(grid: Grid, form: Format) -> Table:
    """The table of a finding in a format."""
    columns = columns_of(grid.columns)
    n_keys = next((i for i, column in enumerate(columns) if i and not column.left), len(columns))
    rows = [[_cell(cell, form) for cell in row] for row in grid.rows]
    return Table([form.text(column.title) for column in columns], rows, n_keys)


def _cell(cell: Cell, form: Format) -> str:
    if isinstance(cell, Num):
        if cell.value is None or cell.kind not in _SPECS:
            return form.text(NOTHING if cell.value is None else written(cell.value, cell.kind))
        spec = _SPECS[cell.kind]
        if cell.lo is None or cell.hi is None:
            return form.number(cell.value, spec)
        return form.marked(cell.value, spec, False, cell.tag == DIFFERS, cell.lo, cell.hi)
    if isinstance(cell, Tagged):
        return form.text(f"{cell.text} {cell.tag}".rstrip())
    return form.text(cell.text if isinstance(cell, Code) else cell)
