"""Which measure foresees the answers: a figure, and the rows of the report's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ragauge.diagnose.foresight import IR_SCORE, JUDGE, Foresight
from ragauge.report.drawing import LINE_COLOURS, legend, legend_rows, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEFORE, AFTER = ("context", "ranking"), ("answer",)
_GROUPS = {
    "before": ("Known before the LLM answers", BEFORE),
    "after": ("Known once it has answered", AFTER),
}
_SHOWN = 25  # measures in the figure; all are in the table
_HEIGHT = 0.26  # inches of a measure


def foresight_figure(found: Foresight) -> Figure | None:
    """AUC of every measure for right answers, the best first, with intervals; None where none is defined."""
    table = found.table[found.table["statistic"] == "auc_right"].dropna(subset="value")
    table = table.sort_values("value", ascending=False, kind="stable").head(_SHOWN)
    if table.empty:
        return None
    drawn = [(title, of, table["of"].isin(of)) for title, of in _GROUPS.values()]
    drawn = [(title, of, rows) for title, of, rows in drawn if rows.any()]
    figure, axes = new_figure(0.7 + _HEIGHT * len(table), legend_rows(len(drawn), 1))
    at = np.arange(len(table))[::-1]
    for number, (title, _, rows) in enumerate(drawn):
        values = table.loc[rows, "value"].to_numpy(dtype=float)
        lo, hi = (table.loc[rows, end].fillna(table["value"]).to_numpy(dtype=float) for end in ("lo", "hi"))
        reach = np.abs(np.vstack([values - lo, hi - values]))
        axes.errorbar(values, at[rows.to_numpy()], xerr=reach, fmt="os"[number], ms=5, lw=1.2,
                      color=LINE_COLOURS[number], label=title)  # fmt: skip
    axes.axvline(0.5, color="#777777", lw=1, ls=":")
    ir_score = table.loc[table["measure"] == IR_SCORE, "value"]
    if len(ir_score):
        axes.axvline(float(ir_score.iloc[0]), color=LINE_COLOURS[0], lw=0.8, alpha=0.5)
    axes.set_yticks(at, [plain(label) for label in table["label"]], fontsize=8.5)
    axes.set_ylim(-0.6, len(table) - 0.4)
    axes.set_xlabel("AUC for right answers; 0.5 is chance")
    axes.grid(axis="x", alpha=0.25)
    legend(figure, axes, 1)
    return figure


def foresight_rows(found: Foresight | None) -> dict[str, Any]:
    """What the template of the section takes: {"foresight": {...} or None}.

    Groups of measures with a row each, {label, name, n, cells by statistic}, the best first.
    """
    if found is None:
        return {"foresight": None}
    groups = []
    for title, of in _GROUPS.values():
        rows = []
        for name, part in found.table[found.table["of"].isin(of)].groupby("measure", sort=False):
            cells = part.set_index("statistic").to_dict("index")
            first = part.iloc[0]
            rows.append({"name": name, "label": first["label"], "n": int(first["n"]), "cells": cells})
        rows.sort(key=lambda row: -_number(row["cells"]["auc_right"]["value"]))
        groups.append({"title": title, "rows": rows})
    shown = {
        "groups": [group for group in groups if group["rows"]],
        "judged": found.target == JUDGE,
        "target": found.target,
        "n_topics": found.n_topics,
        "n_systems": found.n_systems,
        "n_measures": found.table["measure"].nunique(),
        "with_ir": IR_SCORE in set(found.table["measure"]),
        "best": _best(found),
    }
    return {"foresight": shown}


def _best(found: Foresight) -> dict[str, Any] | None:
    """Of what is known before the LLM answers the measure that foresees best; None where none is defined.

    shown: whether its interval lies above 0.5.
    """
    rows = found.table[(found.table["statistic"] == "auc_right") & found.table["of"].isin(BEFORE)]
    rows = rows.dropna(subset="value")
    if rows.empty:
        return None
    best = rows.sort_values("value", ascending=False, kind="stable").iloc[0]
    told = {str(column): value for column, value in best.items()}
    return {**told, "shown": not told["lo"] <= 0.5}


def _number(value: float) -> float:
    return value if value == value else -1.0


def foresight_text(found: Foresight | None) -> str | None:
    """A line for the terminal: the measure that foresees best, and the IR score; None where there is none."""
    if found is None or (best := _best(found)) is None:
        return None
    told = f"{best['label']} foresees best which answers are right: AUC {_interval(best)}"
    if not best["shown"]:
        told = (
            "no measure that is known before the LLM answers is shown to foresee which answers are right; "
            f"the best, {best['label']}: AUC {_interval(best)}"
        )
    rows = found.table[(found.table["statistic"] == "auc_right") & (found.table["measure"] == IR_SCORE)]
    if best["measure"] == IR_SCORE or rows.empty:
        return told
    return f"{told}; IR score {_interval(rows.iloc[0].to_dict())}"


def _interval(row: dict[Any, Any]) -> str:
    told = f"{row['value']:.3f}"
    return f"{told} ({row['lo']:.3f} to {row['hi']:.3f})" if row["lo"] == row["lo"] else told
