"""A comparison as LaTeX tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from ragauge.compare._cells import Format, Table, clean
from ragauge.compare._view import View
from ragauge.compare.comparison import Comparison

# A star or bracket at the beginning of a row would be read as an argument of the row before it.
_LATEX: dict[str, str | int | None] = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "*": "{*}",
    "[": "{[}", "|": r"\textbar{}", "·": r"\textperiodcentered{}", "–": "--", "†": r"$\dagger$",
    "…": r"\ldots{}", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "⟦": "{[}", "⟧": "]",
    **{chr(0x2400 + code): f"{{[}}U+{code:04X}]" for code in range(0x20)}, "␡": "{[}U+007F]",
}  # fmt: skip


def _escape_latex(text: str) -> str:
    return text.translate(str.maketrans(_LATEX))


_LATEX_FORMAT = Format(
    _escape_latex, r"\textbf{{{}}}", r"{}$^{{\dagger}}$", r"{} {{\scriptsize [{}, {}]}}", "$-$",
    "Bold: best of its column",
)  # fmt: skip


def latex(comparison: Comparison, metrics: Sequence[str]) -> str:
    """Booktabs tables of the compared runs: their metrics, then their differences from the baseline, a table
    per section.
    """
    compared = comparison.runs[comparison.runs["compared"]]
    if compared["n_tokens"].nunique() == 1 and compared["system"].is_unique:
        compared = compared.assign(run=compared["system"])  # the caption names the budget
    view = View(replace(comparison, runs=compared), metrics, _LATEX_FORMAT)
    f, common = view.format, comparison.common
    ids = zip(compared["run"], compared["run_id"], strict=True)
    on = f" on {f.text(common['dataset'])}" if "dataset" in common else ""
    topics = f", {common['topics']} topics" if "topics" in common else ""
    at = "" if comparison.n_tokens is None else f", $N = {comparison.n_tokens}$ tokens"
    metrics_caption = [f"RAG systems{on}{topics}{at}.", *view.about_tests(), *map(f.text, comparison.notes)]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            *(f"% {clean(run)}: MLflow run {run_id}" for run, run_id in ids),
            _latex_table(view.metric_table(view.c.runs, ids=False), " ".join(metrics_caption), "tab:ragauge-metrics"),
            *(
                _latex_table(
                    table,
                    rf"{heading}. Marks, tests and intervals as in Table~\ref{{tab:ragauge-metrics}}.",
                    f"tab:ragauge-differences{f'-{number}' if number else ''}",
                )
                for number, (heading, table) in enumerate(view.pair_tables())
            ),
        ]
    )


def _latex_table(table: Table, caption: str, label: str) -> str:
    frame = pd.DataFrame(list(table.rows), columns=list(range(len(table.header))))
    return frame.to_latex(
        index=False,
        escape=False,
        header=list(table.header),
        column_format="l" * table.n_keys + "r" * (len(table.header) - table.n_keys),
        caption=caption,
        label=label,
        position="t",
    )
