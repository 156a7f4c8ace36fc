"""The report of recorded outcomes: one HTML file with their estimates, and what they say of other systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ragauge.report.drawing import LINE_COLOURS, legend, legend_rows, new_figure, plain
from ragauge.report.html import _data_uri, _template, versions, write_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ragauge.estimate.summary import Estimates

_SECTIONS = {
    "what": "What was recorded",
    "zones": "Zones with a guarantee",
    "worth": "Thresholds and predictor",
    "foreseen": "Systems that nobody judged here",
}


@dataclass(frozen=True)
class RecordedContent:
    """What the report shows: estimates of the judged systems, [system, n, ir_score, right, lack] of all, the
    table of `foresee`, the zones by alpha, and figures by name (sorted_scores, foreseen).
    """

    experiment: str
    note: str
    estimates: Estimates
    systems: pd.DataFrame
    foreseen: pd.DataFrame
    alphas: pd.DataFrame
    figures: Mapping[str, Figure]


def foreseen(table: pd.DataFrame) -> Figure:
    """Shares of right answers of systems that were not judged: foreseen in three ways, and as known."""
    rows = table[table["share"] == "right"]
    figure, axes = new_figure(2.6, legend_rows(4, 2))
    at = np.arange(len(rows))
    drawn = (
        ("judged", "what the judge found", "_", 900, "black"),
        ("predictor", "predictor", "o", 60, LINE_COLOURS[0]),
        ("thresholds", "share of scores above k", "s", 50, LINE_COLOURS[1]),
        ("unchanged", "as in the judged system", "^", 40, "#999999"),
    )
    for column, label, marker, size, colour in drawn:
        axes.scatter(at, 100 * rows[column], marker=marker, s=size, color=colour, zorder=2)
        axes.plot([], [], marker, ms=7, color=colour, label=label)
    axes.set_xticks(at, [plain(str(system)) for system in rows["system"]])
    axes.set_xlim(-0.5, len(rows) - 0.5)
    axes.set_ylim(0, None)
    axes.set_ylabel("right answers, %")
    axes.grid(axis="y", alpha=0.25)
    legend(figure, axes, 2)
    return figure


def write_recorded(content: RecordedContent, path: Path) -> None:
    """Writes the report as one HTML file, whole or not at all; texts of the data are escaped."""
    text = _template("recorded.html").render(
        c=content,
        judged=True,
        scored=True,
        fitted=True,
        sections=_SECTIONS,
        images={name: _data_uri(figure) for name, figure in content.figures.items()},
        measures=content.estimates.validation.estimates,
        versions=versions(),
    )
    write_page(text, path)
