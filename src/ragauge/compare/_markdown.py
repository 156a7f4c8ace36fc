"""A comparison as Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from ragauge.compare._cells import Format, Table, clean, fit
from ragauge.compare._view import View
from ragauge.compare.comparison import Comparison

_MAX_QUESTION, _MAX_ANSWER = 120, 160  # characters in a cell


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]|~!#])", r"\\\1", html.escape(text, quote=False))


_MARKDOWN = Format(_escape_markdown, "**{}**", "{}†", "{} [{}, {}]", "−", "Bold: best of its column")


def markdown(comparison: Comparison, metrics: Sequence[str], n_topics: int) -> str:
    """The comparison as Markdown with pipe tables."""
    view = View(comparison, metrics, _MARKDOWN)
    f = view.format
    parameters = view.parameters()
    blocks = [f.text(view.heading())]
    if parameters is not None:
        blocks += ["### What differs", _markdown_table(parameters)]
    for heading, table in (*view.metric_tables(comparison.runs, ids=True), *view.pair_tables()):
        blocks += [f"### {heading}", _markdown_table(table)]
    for heading, found in view.found():
        shown = [one if isinstance(one, str) else _markdown_table(one) for one in found]
        blocks += [f"### {f.text(heading)}", *shown]
    lines = [*view.about_tests(), *map(f.text, comparison.notes)]
    blocks.append("\n".join(f"- {line}" for line in lines))
    if n_topics:
        for heading, rows in view.topics(n_topics):
            cells = [
                (*(f.text(fit(clean(row[x]), _MAX_QUESTION)) if first else "" for x in ("qid", "query")),
                 f.text(name), f.text(judged), f.text(fit(answer, _MAX_ANSWER)), score)
                for row in rows.to_dict("records")
                for first, (name, score, judged, answer) in zip((True, False), view.sides(row), strict=True)
            ]  # fmt: skip
            table = Table(["qid", "question", "run", "class", "answer", "IR score"], cells, 5)
            blocks += [f"### {heading}", *([_markdown_table(table)] if cells else [])]
    return "\n\n".join(blocks) + "\n"


def _markdown_table(table: Table) -> str:
    numbers = len(table.header) - table.n_keys
    rule = [*["---"] * table.n_keys, *["---:"] * numbers]
    return "\n".join("| " + " | ".join(row) + " |" for row in (table.header, rule, *table.rows))
