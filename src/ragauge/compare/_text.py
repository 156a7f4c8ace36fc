"""A comparison on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

import pandas as pd

from ragauge.compare._cells import Format, Table, clean, fit, n_columns, pad
from ragauge.compare._view import View
from ragauge.compare.comparison import Comparison

_MIN_NAME = 8  # columns of a terminal that a name keeps
_TEXT = Format(str, "{}^", "{}†", "{} [{}, {}]", "-", "^ best of its column", padded=2)


def text(comparison: Comparison, metrics: Sequence[str], n_topics: int, width: int) -> str:
    """The comparison for a terminal of `width` columns; a table that is wider goes on below itself."""
    view = View(comparison, metrics, _TEXT)
    parameters = view.parameters()
    blocks = [_wrap(view.heading(), width)]
    if parameters is not None:
        blocks.append("What differs\n" + _text_table(parameters, width))
    n_tokens = comparison.runs["n_tokens"].tolist()
    starts = [i for i in range(1, len(n_tokens)) if view.several_budgets and n_tokens[i] != n_tokens[i - 1]]
    for heading, table in view.metric_tables(comparison.runs, ids=True):
        blocks.append(heading + "\n" + _text_table(table, width, starts))
    for heading, table in view.pair_tables():
        blocks.append(_wrap(heading, width) + "\n" + _text_table(table, width))
    for heading, found in view.found():
        shown = [_wrap(one, width) if isinstance(one, str) else _text_table(one, width) for one in found]
        blocks.append("\n".join([_wrap(heading, width), *shown]))
    blocks.append("\n".join(_wrap(line, width) for line in (*view.about_tests(), *comparison.notes)))
    if n_topics:
        for heading, rows in view.topics(n_topics):
            blocks.append("\n".join([_wrap(heading, width), *_text_topics(view, rows, width)]))
    return "\n\n".join(blocks) + "\n"


def _wrap(line: str, width: int) -> str:
    return textwrap.fill(clean(line), max(width, 20), break_on_hyphens=False)


def _text_topics(view: View, rows: pd.DataFrame, width: int) -> list[str]:
    lines = []
    for number, row in enumerate(rows.to_dict("records"), 1):
        lines.append(fit(f"{number:>3}. {clean(row['qid'])}: {clean(row['query'])}", width))
        sides = view.sides(row)
        names = max(n_columns(name) for name, *_ in sides)
        classes = max(len(side[2]) for side in sides)
        for name, score, judged, answer in sides:
            lines.append(fit(f"     {pad(name, names)}  {score}  {judged:<{classes}}  {answer}", width))
    return lines


def _text_table(table: Table, width: int, starts: Collection[int] = ()) -> str:
    """Columns side by side as far as they fit; the rest below, behind the key columns again.

    Where not even one fits beside the keys, the first column is cut short. Before the rows numbered `starts`
    a line is left empty.
    """
    columns = list(zip(table.header, *table.rows, strict=True))
    sizes = [max(map(n_columns, column)) for column in columns]
    # Of a table of texts the first column alone is repeated.
    n_keys = table.n_keys if table.n_keys < len(columns) else 1
    others = sum(size + 2 for size in sizes[1:n_keys]) + 2 + max(sizes[n_keys:], default=0)
    sizes[0] = min(sizes[0], max(width - others, _MIN_NAME))
    room = width - sum(size + 2 for size in sizes[:n_keys])
    blocks: list[list[int]] = [[]]
    for column in range(n_keys, len(columns)):
        if blocks[-1] and sum(sizes[c] + 2 for c in blocks[-1]) + sizes[column] > room:
            blocks.append([])
        blocks[-1].append(column)
    lines = []
    for block in blocks:
        shown = [*range(n_keys), *block]
        for number, row in enumerate(zip(*(columns[c] for c in shown), strict=True), -1):
            lines += [""] if number in starts else []
            cells = [
                pad(fit(cell, sizes[c]), sizes[c], right=c >= table.n_keys) for cell, c in zip(row, shown, strict=True)
            ]
            lines.append(fit("  ".join(cells).rstrip(), width))
    return "\n".join(lines)
