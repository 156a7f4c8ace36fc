"""Shared parts of the figures of a report: colours, sizes, legends, file formats.

Figures have no global state. They are narrow, with the legend under the axes, so that they stay legible on a
phone.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which readers with any colour vision tell apart: blue is right, the warm ones
# are hallucinations, grey holds no answer.
CLASS_COLOURS = {1: "#999999", 2: "#E69F00", 3: "#56B4E9", 4: "#D55E00", 5: "#0072B2"}
MISSING_COLOUR = "#DDDDDD"
LINE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
FORMATS = ("png", "svg", "pdf")
WIDTH = 5.0  # inches
NAME_CHARS = 20  # of a system's name on one line beside its bar


def save(figure: Figure, path: Path) -> None:
    """Writes a figure in the format of the file's ending, the same bytes for the same figure: png, svg, pdf.

    A PNG has enough pixels for a screen of double resolution. ValueError for another ending.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    kind = path.suffix.removeprefix(".")
    if kind not in FORMATS:
        raise ValueError(f"{path}: figures are written as {', '.join(FORMATS)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "svg":
        path.write_bytes(svg(figure))
        return
    _lay_out(figure)
    if kind == "pdf":
        figure.savefig(path, format="pdf", dpi=160, metadata={"CreationDate": None})
        return
    FigureCanvasAgg(figure).print_png(path)


def _lay_out(figure: Figure) -> None:
    """Computes the layout once for all formats, since it takes a third of the drawing time."""
    if figure.get_layout_engine() is not None:
        figure.set_dpi(180)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def svg(figure: Figure) -> bytes:
    """The figure as SVG with real text, the same bytes for the same figure."""
    from matplotlib import rc_context

    _lay_out(figure)
    buffer = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "ragauge"}):
        figure.savefig(buffer, format="svg", dpi=160, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def new_figure(height: float, legend_rows: int) -> tuple[Figure, Axes]:
    """A figure of the common width with room for a legend of so many rows below axes of this height."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height + 0.2 * legend_rows), layout="constrained")
    axes: Any = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def legend_rows(entries: int, columns: int) -> int:
    return math.ceil(entries / columns)


def legend(figure: Figure, axes: Axes, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower left",
        ncols=columns,
        frameon=False,
        fontsize=8.5,
        columnspacing=1.2,
        borderaxespad=0.1,
        handletextpad=0.5,
    )


def plain(name: object) -> str:
    """A name as a label: a dollar sign would start a formula, and a leading underscore hides the entry."""
    text = str(name).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
