"""Sections as text for a terminal, as Markdown, and as LaTeX; every text of the data is cleaned and escaped.

It shows tables and paragraphs. Each format marks numbers whose tag holds BEST or DIFFERS.
"""

from __future__ import annotations

import html
import re
import textwrap
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pandas as pd

from ragauge.contract.finding import BEST, DIFFERS, Cell, Code, Grid, Num, Section, Tagged, Text, columns_of
from ragauge.contract.visible import visible
from ragauge.show.formats import interval, written

_MIN_NAME = 8  # columns of a terminal that a name keeps
_MAX_WRAPPED = 160  # characters of a cell that may wrap, in Markdown

# A text of a corpus, model or person as one line that does nothing to a terminal.
clean = partial(visible, one_line=True)


@dataclass(frozen=True)
class Sheet:
    """The printed or written content of runs side by side: `runs` has the MLflow run id by name."""

    heading: str
    sections: Sequence[Section]
    notes: Sequence[str]
    runs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Format:
    """How a format writes texts and marks numbers; templates take the number as `{}`.

    padded: columns for marks behind each number of a column with marks or intervals.
    """

    escape: Callable[[str], str]
    best: str
    differs: str
    interval: str
    minus: str
    about_best: str
    padded: int = 0

    def text(self, value: object) -> str:
        """The text escaped for this format."""
        return self.escape(clean(value))

    def cell(self, cell: Cell, padded: int = 0) -> str:
        """A cell of a table; a number with its marks and its interval."""
        if isinstance(cell, Tagged):
            return self.text(f"{cell.text} {cell.tag}".rstrip())
        if not isinstance(cell, Num):
            return self.text(cell.text if isinstance(cell, Code) else cell)
        number = self._number(cell.value, cell)
        marked = self.best.format(number) if BEST in cell.tag else number
        marked = (self.differs.format(marked) if DIFFERS in cell.tag else marked).ljust(len(number) + padded)
        if not interval(cell):
            return marked
        return self.interval.format(marked, self._number(cell.lo, cell), self._number(cell.hi, cell))

    def _number(self, value: float | None, cell: Num) -> str:
        return self.escape(written(value, cell.kind)).replace("−", self.minus)


@dataclass(frozen=True)
class Table:
    """Formatted cells by column; `right` marks right-aligned columns.

    n_keys: how many columns name the row. head: how many begin a list of long texts; 0 for any other table.
    parted: the numbers of the rows before which an empty row parts them from those above.
    """

    columns: Sequence[Sequence[str]]
    right: Sequence[bool]
    n_keys: int
    head: int
    parted: Sequence[int]

    @property
    def lines(self) -> list[tuple[str, ...]]:
        """The titles, then the rows."""
        return list(zip(*self.columns, strict=True))


def table_of(grid: Grid, form: Format) -> Table:
    """The table of a finding in a format."""
    heads = columns_of(grid.columns)
    rows = [row for row in grid.rows if row]
    empty = [at for at, row in enumerate(grid.rows) if not row]
    columns = []
    for at, head in enumerate(heads):
        cells = [row[at] for row in rows]
        is_marked = any(isinstance(cell, Num) and (cell.tag or interval(cell)) for cell in cells)
        columns.append([form.text(head.title), *(form.cell(c, form.padded if is_marked else 0) for c in cells)])
    right = [at > 0 and not head.left for at, head in enumerate(heads)]
    n_keys = right.index(True) if True in right else len(heads)
    first = next((at + 1 for at, one in enumerate(heads) if one.wrap), 0)
    return Table(columns, right, n_keys, first, [at - number for number, at in enumerate(empty)])


def _about_best(sheet: Sheet, form: Format) -> list[str]:
    grids = [block for section in sheet.sections for block in section.blocks if isinstance(block, Grid)]
    cells = (cell for grid in grids for row in grid.rows for cell in row)
    return [form.about_best] if any(isinstance(cell, Num) and BEST in cell.tag for cell in cells) else []


# --- a terminal ---------------------------------------------------------------------------------------------


def n_columns(text: str) -> int:
    """Width of a text in terminal columns."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def fit(text: str, width: int) -> str:
    """The text, truncated with an ellipsis if it does not fit."""
    if n_columns(text) <= width:
        return text
    kept = text[: max(width - 1, 1)]
    while n_columns(kept) > max(width - 1, 1):
        kept = kept[:-1]
    return kept + "…"


def _pad(text: str, size: int, right: bool) -> str:
    blank = " " * max(0, size - n_columns(text))
    return blank + text if right else text + blank


TERMINAL = Format(str, "{}^", "{}†", "{} [{}, {}]", "-", "^ best of its column.", padded=2)


def terminal(sheet: Sheet, width: int) -> str:
    """The sheet for a terminal of `width` columns; a wider table continues below itself."""
    blocks = [_wrap(sheet.heading, width)]
    for section in sheet.sections:
        lines = [_wrap(section.heading, width)]
        for block in section.blocks:
            if isinstance(block, Grid):
                table = table_of(block, TERMINAL)
                lines += (_listed if table.head else _side_by_side)(table, width)
            elif isinstance(block, Text):
                lines.append(_wrap(block.text, width))
        blocks.append("\n".join(lines))
    notes = [*_about_best(sheet, TERMINAL), *sheet.notes]
    return "\n\n".join([*blocks, "\n".join(_wrap(note, width) for note in notes)]) + "\n"


def _wrap(line: str, width: int) -> str:
    return textwrap.fill(clean(line), max(width, 20), break_on_hyphens=False)


def _listed(table: Table, width: int) -> list[str]:
    """Long texts as a numbered list: non-blank first columns of each row, the others below."""
    sizes = [max(map(n_columns, column[1:]), default=0) for column in table.columns]
    lines, number = [], 0
    for row in table.lines[1:]:
        if row[0]:
            number += 1
            lines.append(fit(f"{number:>3}. {': '.join(row[: table.head])}", width))
        others = [_pad(row[at], sizes[at], table.right[at]) for at in range(table.head, len(row))]
        lines.append(fit(("     " + "  ".join(others)).rstrip(), width))
    return lines


def _side_by_side(table: Table, width: int) -> list[str]:
    """As many columns as fit side by side; the others below, after repeated key columns.

    Where not even one fits beside the keys, the first column is cut short.
    """
    sizes = [max(map(n_columns, column)) for column in table.columns]
    # Of a table of texts the first column alone is repeated.
    n_keys = table.n_keys if table.n_keys < len(sizes) else 1
    others = sum(size + 2 for size in sizes[1:n_keys]) + 2 + max(sizes[n_keys:], default=0)
    sizes[0] = min(sizes[0], max(width - others, _MIN_NAME))
    room = width - sum(size + 2 for size in sizes[:n_keys])
    blocks: list[list[int]] = [[]]
    for at in range(n_keys, len(sizes)):
        if blocks[-1] and sum(sizes[c] + 2 for c in blocks[-1]) + sizes[at] > room:
            blocks.append([])
        blocks[-1].append(at)
    lines = []
    for block in blocks:
        for number, row in enumerate(table.lines, -1):
            lines += [""] if number in table.parted else []
            cells = [_pad(fit(row[at], sizes[at]), sizes[at], table.right[at]) for at in (*range(n_keys), *block)]
            lines.append(fit("  ".join(cells).rstrip(), width))
    return lines


# --- Markdown -----------------------------------------------------------------------------------------------


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]|~!#])", r"\\\1", html.escape(text, quote=False))


MARKDOWN = Format(_escape_markdown, "**{}**", "{}†", "{} [{}, {}]", "−", "Bold: best of its column.")


def markdown(sheet: Sheet) -> str:
    """The sheet as Markdown with pipe tables."""
    blocks = [MARKDOWN.text(sheet.heading)]
    for section in sheet.sections:
        blocks.append(f"### {MARKDOWN.text(section.heading)}")
        for block in section.blocks:
            if isinstance(block, Grid):
                blocks.append(_pipes(block))
            elif isinstance(block, Text):
                blocks.append(MARKDOWN.text(block.text))
    notes = [*_about_best(sheet, MARKDOWN), *map(MARKDOWN.text, sheet.notes)]
    return "\n\n".join([*blocks, "\n".join(f"- {note}" for note in notes)]) + "\n"


def _pipes(grid: Grid) -> str:
    wraps = [column.wrap for column in columns_of(grid.columns)]
    short = [
        [fit(clean(cell), _MAX_WRAPPED) if wrap and isinstance(cell, str) else cell
         for cell, wrap in zip(row, wraps, strict=True)]
        for row in grid.rows if row
    ]  # fmt: skip
    table = table_of(replace(grid, rows=short), MARKDOWN)
    titles, *rows = table.lines
    rule = ["---:" if right else "---" for right in table.right]
    return "\n".join("| " + " | ".join(row) + " |" for row in (titles, rule, *rows))


# --- LaTeX --------------------------------------------------------------------------------------------------

# A star or bracket at the beginning of a row would be read as an argument of the row before it.
_LATEX: dict[str, str | int | None] = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "*": "{*}",
    "[": "{[}", "|": r"\textbar{}", "·": r"\textperiodcentered{}", "–": "--", "†": r"$\dagger$",
    "…": r"\ldots{}", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "⟦": "{[}", "⟧": "]",
    **{chr(0x2400 + code): f"{{[}}U+{code:04X}]" for code in range(0x20)}, "␡": "{[}U+007F]",
}  # fmt: skip


def escape_latex(text: str) -> str:
    """The text with LaTeX's special characters escaped."""
    return text.translate(str.maketrans(_LATEX))


LATEX = Format(
    escape_latex, r"\textbf{{{}}}", r"{}$^{{\dagger}}$", r"{} {{\scriptsize [{}, {}]}}", "$-$",
    "Bold: best of its column.",
)  # fmt: skip


def latex(sheet: Sheet) -> str:
    """The tables of the sheet for the package booktabs, with their labels as captions.

    The first table with intervals says in its caption what the marks mean, and the notes; a section's paragraphs
    are in the captions of its tables.
    """
    grids = [
        (block, [one.text for one in section.blocks if isinstance(one, Text)])
        for section in sheet.sections for block in section.blocks if isinstance(block, Grid)
    ]  # fmt: skip
    first = next((number for number, (grid, _) in enumerate(grids, 1) if _is_measured(grid)), 0)
    lines = [r"% needs \usepackage{booktabs}"]
    lines += [f"% {clean(name)}: MLflow run {run_id}" for name, run_id in sheet.runs.items()]
    for number, (grid, texts) in enumerate(grids, 1):
        said = [f"{LATEX.text(grid.label)}.", *map(LATEX.text, texts)]
        if number == first:
            said += [*_about_best(sheet, LATEX), *map(LATEX.text, sheet.notes)]
        elif _is_measured(grid):
            said.append(rf"Marks, tests and intervals as in Table~\ref{{tab:ragauge-{first}}}.")
        lines.append(_booktabs(grid, " ".join(said), f"tab:ragauge-{number}"))
    return "\n".join(lines)


def _is_measured(grid: Grid) -> bool:
    return any(isinstance(cell, Num) and bool(interval(cell) or cell.tag) for row in grid.rows for cell in row)


def _booktabs(grid: Grid, caption: str, label: str) -> str:
    heads = columns_of(grid.columns)
    kept = [at for at, head in enumerate(heads) if head.on_paper]
    rows_kept = [[row[at] for at in kept] for row in grid.rows if row]
    table = table_of(replace(grid, columns=[heads[at] for at in kept], rows=rows_kept), LATEX)
    titles, *rows = table.lines
    frame = pd.DataFrame(rows, columns=list(range(len(titles))))
    return frame.to_latex(
        index=False,
        escape=False,
        header=list(titles),
        column_format="".join("r" if right else "l" for right in table.right),
        caption=caption,
        label=label,
        position="t",
    )
