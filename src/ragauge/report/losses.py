"""Where evidence is lost and why topics fail, in the shape in which the report shows them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge.diagnose.failures import EVERY_CAUSE
from ragauge.diagnose.funnel import CLASSES
from ragauge.report.drawing import CLASS_COLOURS, NAME_CHARS, WIDTH, legend, legend_rows, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_SYSTEMS = 4  # funnels drawn
_MAX_SLICES = 8  # of one slicing in the table of causes
_KEPT, _LOST, _GAINED = "#0072B2", "#D55E00", "#009E73"
_COLOURS = (
    "#000000", "#D55E00", "#E69F00", "#F0E442", "#CC79A7", "#8C6D31", "#999999", "#56B4E9", "#0072B2",
    "#DDDDDD", "#EEEEEE",
)  # fmt: skip
Rows = list[dict[Any, Any]]


@dataclass(frozen=True)
class Losses:
    """Tables of a sweep at one budget, each with a column system.

    `funnels` are those of `funnel_of_metrics`, `answers` of `answers_by_evidence`, `causes` of
    `cause_shares`, `slices` of `causes_by_slice`, `places` of `right_by_place`; one without rows was not to
    be had. `untold` are the systems without a funnel.
    """

    funnels: pd.DataFrame
    answers: pd.DataFrame
    causes: pd.DataFrame
    slices: pd.DataFrame
    places: pd.DataFrame
    untold: Sequence[str] = ()

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables that have rows, by file name."""
        found = {
            "funnel": self.funnels, "answers_by_evidence": self.answers, "failure_causes": self.causes,
            "failure_slices": self.slices, "right_by_evidence_place": self.places,
        }  # fmt: skip
        return {name: table for name, table in found.items() if len(table)}


def losses(found: Losses | None, systems: Sequence[str]) -> dict[str, Any]:
    """What the templates of the two sections take; `systems` are in the order of the leaderboard."""
    if found is None:
        nothing: Rows = []
        names = ("funnels", "failures", "advice", "by_evidence", "failure_slices", "places", "answer_names")
        return {**dict.fromkeys(names, nothing), "funnel_untold": ()}
    by = {name: _by_system(getattr(found, name), systems) for name in ("funnels", "causes", "places")}
    return {
        "funnels": by["funnels"],
        "funnel_untold": found.untold,
        "by_evidence": _wide(found.answers, systems),
        "answer_names": tuple(CLASSES),
        "failures": by["causes"],
        "advice": _advice(found.causes),
        "failure_slices": _slices(found.slices, systems),
        "places": by["places"],
    }


def _by_system(table: pd.DataFrame, systems: Sequence[str]) -> Rows:
    """{system, rows} in the order of the systems."""
    of = dict(tuple(table.groupby("system", sort=False))) if len(table) else {}
    return [{"system": name, "rows": of[name].to_dict("records")} for name in systems if name in of]


def _wide(table: pd.DataFrame, systems: Sequence[str]) -> Rows:
    """A row per system and amount of evidence: {system, evidence, n, of: {answer: row}}."""
    found: dict[tuple[Any, Any], dict[Any, Any]] = {}
    for row in table.to_dict("records"):
        at = (row["system"], row["evidence"])
        kept = found.setdefault(at, {"system": at[0], "evidence": at[1], "n": row["n"], "of": {}})
        kept["of"][row["answer"]] = row
    order = list(systems)
    return sorted(found.values(), key=lambda row: order.index(row["system"]))


def _advice(table: pd.DataFrame) -> Rows:
    """What to try for each cause that there is, the most frequent over all systems first."""
    if table.empty:
        return []
    counts = table.groupby("cause")["topics"].sum().sort_values(ascending=False, kind="stable")
    causes = [EVERY_CAUSE[str(name)] for name, topics in counts.items() if topics]
    return [{"cause": c.name, "advice": c.advice, "overrides": c.overrides} for c in causes]


def _slices(table: pd.DataFrame, systems: Sequence[str]) -> Rows:
    """Of the first system of the leaderboard: {by, causes, rows: [{slice, n, cells: {cause: row}}]}."""
    if table.empty:
        return []
    first = next(name for name in systems if (table["system"] == name).any())
    own = table[table["system"] == first]
    found = []
    for by, part in own.groupby("slicing", sort=False):
        labels = list(dict.fromkeys(part["slice"]))
        sizes = part.groupby("slice")["n"].first()
        cells = {(row["slice"], row["cause"]): row for row in part.to_dict("records")}
        causes = part.groupby("cause")["topics"].sum().sort_values(ascending=False, kind="stable").index
        shown = [
            {"slice": label, "n": int(sizes[label]), "cells": {c: cells.get((label, c)) for c in causes}}
            for label in labels[:_MAX_SLICES]
        ]
        left_out = max(0, len(labels) - _MAX_SLICES)
        found.append({"by": by, "system": first, "causes": list(causes), "rows": shown, "left_out": left_out})
    return found


def funnel_figure(funnels: pd.DataFrame, systems: Sequence[str]) -> Figure | None:
    """Waterfalls, one below the other: what of the evidence each step keeps, loses or adds.

    `funnels` as in `Losses`. The first four systems; None without one. Whiskers are intervals of the changes.
    """
    from matplotlib.figure import Figure

    shown = [name for name in systems if (funnels["system"] == name).any()][:_MAX_SYSTEMS]
    if not shown:
        return None
    tables = [funnels[funnels["system"] == name].reset_index(drop=True) for name in shown]
    heights = [0.32 * len(table) + 0.45 for table in tables]
    figure = Figure(figsize=(WIDTH, sum(heights) + 0.9), layout="constrained")
    panels: Any = figure.subplots(len(tables), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    for axes, name, table in zip(panels, shown, tables, strict=True):
        _waterfall(axes, table)
        axes.set_title(plain(name), fontsize=10, loc="left")
    for colour, label in ((_KEPT, "kept"), (_LOST, "lost"), (_GAINED, "gained")):
        panels[0].plot([], [], "s", ms=8, color=colour, label=label)
    panels[-1].set_xlabel("share of the evidence, mean over topics")
    legend(figure, panels[0], 3)
    return figure


def _waterfall(axes: Any, table: pd.DataFrame) -> None:
    """One funnel: a bar per step, with what changed behind it."""
    at = np.arange(len(table))
    value, change = table["value"].to_numpy(dtype=float), table["change"].fillna(0).to_numpy(dtype=float)
    before = value - change
    axes.barh(at, np.minimum(value, before), color=_KEPT, height=0.66)
    axes.barh(at, np.maximum(-change, 0), left=value, color=_LOST, height=0.66)
    axes.barh(at, np.maximum(change, 0), left=before, color=_GAINED, height=0.66)
    known = table["change_lo"].notna().to_numpy()
    lo, hi = (before + table[end].to_numpy(dtype=float) for end in ("change_lo", "change_hi"))
    axes.hlines(at[known], lo[known], hi[known], color="black", lw=1)
    for row in np.flatnonzero(known).tolist():
        text = f"{change[row]:+.3f}".replace("-", "−")
        right = max(value[row], before[row], hi[row])
        axes.text(right + 0.015, row, text, va="center", fontsize=8)
    axes.text(value[0] + 0.015, 0, f"{value[0]:.3f}", va="center", fontsize=8)
    axes.set_yticks(at, [str(label) for label in table["label"]])
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.16)
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25)


def causes_figure(causes: pd.DataFrame, systems: Sequence[str]) -> Figure | None:
    """Stacked bars of the causes of failure, a bar per system; None where no topic failed."""
    names = [name for name in EVERY_CAUSE if causes.loc[causes["cause"] == name, "topics"].sum() > 0]
    shown = [name for name in systems if (causes["system"] == name).any()]
    if not names or not shown:
        return None
    labels = ["\n".join(textwrap.wrap(plain(name), NAME_CHARS)) for name in shown]
    lines = sum(max(1.0, 0.62 * (label.count("\n") + 1)) for label in labels)
    figure, axes = new_figure(0.8 + 0.4 * lines, legend_rows(len(names), 2))
    share = causes.pivot_table(index="system", columns="cause", values="share", aggfunc="first")
    share = share.reindex(index=shown, columns=names).fillna(0)
    at, left = np.arange(len(shown)), np.zeros(len(shown))
    colours = dict(zip(EVERY_CAUSE, (*_COLOURS, *CLASS_COLOURS.values()), strict=False))
    for name in names:
        values = share[name].to_numpy(dtype=float)
        axes.barh(at, values, left=left, color=colours[name], label=name, height=0.74)
        left += values
    axes.set_yticks(at, labels)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlim(0, min(1.0, 1.05 * float(left.max())))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("share of topics that fail")
    legend(figure, axes, 2)
    return figure


def figures_of(found: Losses | None, systems: Sequence[str]) -> dict[str, Figure]:
    """The figures of both sections, by name: funnel, failures; those that there are."""
    if found is None:
        return {}
    drawn = {
        "funnel": funnel_figure(found.funnels, systems) if len(found.funnels) else None,
        "failures": causes_figure(found.causes, systems) if len(found.causes) else None,
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}
