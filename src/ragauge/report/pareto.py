"""The figure of score against what it costs: tokens of context, seconds and money, with the frontier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge.report.drawing import LINE_COLOURS, MARKERS, WIDTH, legend, legend_rows, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHT = 2.5  # inches of one panel
_SCORES = {"correct": "right answers", "ir_score": "IR score"}
_AXES = {
    "tokens": "tokens of context, mean over topics",
    "seconds": "seconds per topic, of a batch",
    "cost": "US dollars per topic",
}
_LATENCY = "seconds of one question, median"


def frontiers(table: pd.DataFrame) -> Figure | None:
    """Score against each cost, a panel each, a point per job in its system's colour; rings mark the frontier.

    `table` is that of `score_against_cost`. A cost that is unknown or the same for all jobs has no panel;
    None where no panel is left.
    """
    from matplotlib.figure import Figure

    panels = [name for name in _AXES if table[name].notna().any() and table[name].dropna().nunique() > 1]
    if not panels or table["score"].isna().all():
        return None
    systems = list(dict.fromkeys(table["system"]))
    rows = legend_rows(len(systems) + 1, 2)
    figure = Figure(figsize=(WIDTH, _HEIGHT * len(panels) + 0.2 * rows), layout="constrained")
    axes: Any = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for ax, name in zip(axes, panels, strict=True):
        _panel(ax, table.dropna(subset=[name]), name, systems)
        latency = name == "seconds" and bool(table["latency"].all())
        ax.set_xlabel(_LATENCY if latency else _AXES[name])
        ax.set_ylabel(_SCORES[str(table["measure"].iloc[0])])
    legend(figure, axes[0], 2)
    return figure


def _panel(ax: Any, table: pd.DataFrame, name: str, systems: list[str]) -> None:
    for i, system in enumerate(systems):
        own = table[table["system"] == system]
        colour, marker = LINE_COLOURS[i % len(LINE_COLOURS)], MARKERS[i % len(MARKERS)]
        ax.plot([], [], marker, color=colour, label=plain(system))
        ax.scatter(own[name], own["score"], s=34, color=colour, marker=marker, alpha=0.9, zorder=3)
    best = table[table[f"on_{name}"]].sort_values([name, "score"])
    ax.step(best[name], best["score"], where="post", color="#444444", lw=1, zorder=1)
    ax.scatter(best[name], best["score"], s=120, facecolors="none", edgecolors="#444444", zorder=2)
    ax.plot([], [], "o-", color="#444444", mfc="none", ms=9, lw=1, label="frontier")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    ax.set_xlim(left=0, right=float(table[name].max()) * 1.08)
    ax.set_ylim(0, max(1.1 * float(table["score"].max()), 0.01))
    if (table["measure"] == "correct").all():
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
