"""Figures of a job and of a sweep, as matplotlib figures without global state.

Narrow, with the legend under the axes, so that they stay legible on a phone.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ragauge.contract.frames import JUDGE_CLASSES
from ragauge.contract.metrics import IR_SCORE
from ragauge.show.drawing import (
    CLASS_COLOURS,
    LINE_COLOURS,
    MARKERS,
    MISSING_COLOUR,
    NAME_CHARS,
    legend,
    legend_rows,
    new_figure,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ragauge.estimate import Thresholds, Zone, Zones

_FLOOR_COLOUR = "#777777"
_STRIP_BINS, _STRIP_ROWS = 200, 60
_MANY_POINTS = 1000  # from here on points are drawn as pixels, also in SVG


def ir_score_by_n(
    curves: Mapping[str, Mapping[int, float]],
    study: Mapping[str, Mapping[int, float]] | None = None,
    floors: Mapping[str, Mapping[int, float]] | None = None,
    bands: Mapping[str, Mapping[int, tuple[float, float]]] | None = None,
) -> Figure:
    """IR score against the budget in tokens, a line per retriever; `study` adds published ones, dashed.

    `floors`, scores of unrelated text by name, are grey dotted lines. `bands` (lower and upper by system and
    budget) are shaded.
    """
    published = [name for name in curves if study and name in study]
    floors = floors or {}
    figure, axes = new_figure(3.4, legend_rows(len(curves) + len(published) + len(floors), 3))
    for i, (name, curve) in enumerate(curves.items()):
        ns = sorted(curve)
        colour = LINE_COLOURS[i % len(LINE_COLOURS)]
        # Wide lines under thin ones: retrievers that score alike stay visible.
        width = 1.2 + 2.4 * (len(curves) - 1 - i) / max(len(curves) - 1, 1)
        axes.plot(
            ns,
            [curve[n] for n in ns],
            color=colour,
            lw=width,
            marker=MARKERS[i % len(MARKERS)],
            markersize=4 + width,
            label=plain(name),
        )
        if bands and name in bands:
            at = sorted(bands[name])
            lower, upper = zip(*(bands[name][n] for n in at), strict=True)
            axes.fill_between(at, lower, upper, color=colour, alpha=0.13, lw=0)
        if study and name in study:
            ns = sorted(study[name])
            points = [study[name][n] for n in ns]
            axes.plot(ns, points, "--", color=colour, lw=1, label=plain(f"{name}, study"))
    for i, (name, floor) in enumerate(floors.items()):
        ns = sorted(floor)
        marker = "" if len(ns) > 1 else MARKERS[i % len(MARKERS)]
        axes.plot(
            ns,
            [floor[n] for n in ns],
            color=_FLOOR_COLOUR,
            lw=1.4,
            ls=":",
            marker=marker,
            markersize=4,
            zorder=1.5,
            label=plain(name),
        )
    axes.set_xlabel("N, tokens of what was retrieved")
    axes.set_ylabel(f"{IR_SCORE.label}, mean over topics")
    axes.set_ylim(0, 1.02)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.25)
    legend(figure, axes, 3)
    return figure


def judge_shares(shares: pd.DataFrame, title: str) -> Figure:
    """Stacked bars of the judge classes, one bar per row.

    `shares` has an index of names and columns judge_share_1..5 and judge_share_missing, in [0, 1].
    """
    names = ["\n".join(textwrap.wrap(plain(name), NAME_CHARS)) for name in shares.index]
    lines = sum(max(1.0, 0.62 * (name.count("\n") + 1)) for name in names)
    figure, axes = new_figure(0.8 + 0.4 * lines, legend_rows(6, 2))
    at = np.arange(len(names))
    left = np.zeros(len(shares))
    series = [(f"judge_share_{c}", CLASS_COLOURS[c], f"{c} {JUDGE_CLASSES[c]}") for c in sorted(JUDGE_CLASSES)[::-1]]
    for column, colour, label in [*series, ("judge_share_missing", MISSING_COLOUR, "no verdict")]:
        values = np.nan_to_num(shares[column].to_numpy(dtype=float))
        if column == "judge_share_missing" and not values.any():
            continue
        bars = axes.barh(at, values, left=left, color=colour, label=label, height=0.74)
        axes.bar_label(
            bars,
            labels=[f"{v:.0%}" if v >= 0.05 else "" for v in values],
            label_type="center",
            color="white" if column in ("judge_share_5", "judge_share_4") else "black",
            fontsize=8,
        )
        left += values
    axes.set_yticks(at, names)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("share of topics")
    axes.set_title(title, fontsize=10, loc="left")
    legend(figure, axes, 2)
    return figure


def sorted_scores(
    outcomes: pd.DataFrame,
    thresholds: Thresholds,
    title: str,
    zones: Zones | None = None,
    floor: float | None = None,
) -> Figure:
    """IR scores in rising order, coloured by judge class, with h, k and existing zones.

    `outcomes` has ir_score and label, a row per topic (or per topic and retriever). Rows of one score are
    ordered by class, and a strip under the axes shows the classes alone: their shares in
    200 bins where there are more than 1,000 rows. `floor` is what unrelated text scores, where all rows are
    of one budget.
    """
    extra = len(_zones_found(zones)) + (floor is not None)
    figure, axes = new_figure(3.4, legend_rows(8 + extra, 2))
    scores = outcomes["ir_score"].to_numpy(dtype=float)
    labels = outcomes["label"].astype("Int64").fillna(0).to_numpy(dtype=int)
    order = np.lexsort((labels, scores))
    scores, labels = scores[order], labels[order]
    at = np.arange(1, len(scores) + 1)
    axes.plot(at, scores, color="#444444", lw=0.7, zorder=1)
    size = float(np.clip(6000 / max(len(scores), 1), 6, 26))
    # One scatter in the order of the scores: drawn class by class, the last class would cover the others.
    palette = np.array([MISSING_COLOUR, *CLASS_COLOURS.values()])
    axes.scatter(at, scores, s=size, c=palette[labels], zorder=2, linewidths=0, rasterized=len(scores) > _MANY_POINTS)
    for c in sorted(set(labels.tolist()), key=lambda c: c or len(palette)):
        name = f"{c} {JUDGE_CLASSES[c]}" if c else "no verdict"
        axes.plot([], [], "o", ms=5, color=palette[c], label=name)
    for letter, threshold, says in (("k", thresholds.k, "right above"), ("h", thresholds.h, "lack below")):
        if threshold.value == threshold.value:
            note = f": {threshold.degenerate}" if threshold.degenerate else ""
            axes.axhline(
                threshold.value,
                color="black",
                lw=1.1,
                ls="--" if letter == "k" else ":",
                label=f"{letter} = {threshold.value:.3f} ({says}{note})",
            )
    for zone, says in _zones_found(zones):
        lo, hi = (zone.value, 1.03) if zone.side == "above" else (-0.03, zone.value)
        colour = CLASS_COLOURS[zone.target]
        axes.axhspan(lo, hi, color=colour, alpha=0.12, lw=0, zorder=0, label=says)
    if floor is not None:
        axes.axhline(floor, color=_FLOOR_COLOUR, lw=1.1, ls="-.", zorder=0.5, label=f"unrelated text, {floor:.3f}")
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel(IR_SCORE.label)
    axes.set_title(title, fontsize=10, loc="left")
    if labels.any():
        _class_strip(axes, labels, palette)
    else:
        axes.set_xlabel(f"topics, by rising {IR_SCORE.label}")
    axes.set_xlim(0.5 - 0.01 * len(scores), 0.5 + 1.01 * len(scores))
    legend(figure, axes, 2)
    return figure


def _zones_found(zones: Zones | None) -> list[tuple[Zone, str]]:
    """The zones with a valid threshold, each with its legend entry."""
    if zones is None:
        return []
    found = [(zones.right, "right"), (zones.lack, "lack")]
    return [
        (zone, f"{zone.side} {zone.value:.2f}: at most {zones.alpha:.0%} not {says}") for zone, says in found if zone.n
    ]


def _class_strip(axes: Axes, labels: np.ndarray, palette: np.ndarray) -> None:
    """Draws the classes as a band in the order of the axes above; for many topics, their shares."""
    from matplotlib.colors import to_rgb

    bins = np.array_split(labels, _STRIP_BINS if len(labels) > _MANY_POINTS else len(labels))
    heights = (np.arange(_STRIP_ROWS) + 0.5) / _STRIP_ROWS
    image = np.array([np.sort(b)[(heights * len(b)).astype(int)] for b in bins]).T
    strip = axes.inset_axes((0, -0.17, 1, 0.12), sharex=axes)
    strip.imshow(
        np.array([to_rgb(colour) for colour in palette])[image],
        extent=(0.5, len(labels) + 0.5, 0, 1),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
    )
    strip.set_yticks([])
    strip.spines[:].set_visible(False)
    strip.set_xlabel(f"topics, by rising {IR_SCORE.label}; those of one score by class")
    axes.tick_params(axis="x", labelbottom=False, length=0)


def reliability(curves: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """Predicted against observed shares: a line per curve [predicted, observed, n], a point per bin.

    The area of a point grows with the rows in its bin.
    """
    figure, axes = new_figure(3.6, legend_rows(len(curves) + 1, 3))
    axes.plot([0, 1], [0, 1], color="#999999", lw=1, ls="--", label="perfect")
    for i, (name, curve) in enumerate(curves.items()):
        colour = LINE_COLOURS[i % len(LINE_COLOURS)]
        axes.plot(curve["predicted"], curve["observed"], color=colour, lw=1)
        largest = max(float(curve["n"].max()), 1.0)
        sizes = 14 + 110 * curve["n"] / largest
        axes.scatter(curve["predicted"], curve["observed"], s=sizes, color=colour, alpha=0.85)
        axes.plot([], [], "o", color=colour, label=plain(name))
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_box_aspect(1)
    axes.grid(alpha=0.25)
    axes.set_xlabel("predicted probability")
    axes.set_ylabel("observed share")
    axes.set_title(title, fontsize=10, loc="left")
    legend(figure, axes, 3)
    return figure
