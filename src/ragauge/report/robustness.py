"""The four abilities: one figure, the tables of the section, and lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge.estimate.robustness import (
    CHANGED,
    CONTRADICTED,
    COUNTERFACTUAL,
    FACTS,
    INTEGRATION,
    MANY,
    NOISE,
    REJECTION,
    Abilities,
)
from ragauge.estimate.slicing import in_order
from ragauge.report import formats
from ragauge.report.drawing import LINE_COLOURS, MARKERS, WIDTH, legend, legend_rows, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHT = 5.0  # inches of the four panels
_FACT_COLOURS = {"detected": "#009E73", "corrected": "#56B4E9", "fooled": "#CC79A7"}
_FACT_NAMES = {
    "detected": "says that documents err", "corrected": "gives the true answer",
    "fooled": "gives the changed answer",
    "corrected_of_detected": "of those that say so, give the true answer",
}  # fmt: skip
_CONDITIONS = {"0": "none", CONTRADICTED: "changed,\ntruth beside it", CHANGED: "changed"}
_MEASURES = {
    "right": "right", "lack": "lack of information", "hallucination": "hallucination", "ir_score": "IR score",
    "answer_in_context": "answer in the context", **_FACT_NAMES,
}  # fmt: skip


def abilities_figure(found: Abilities) -> Figure:
    """Four panels, a curve of each system with its interval at every point; one that lacks says so."""
    from matplotlib.figure import Figure

    systems = found.systems
    several = len(systems) > 1
    entries = (len(systems) if several else 0) + len(FACTS)
    rows = legend_rows(entries, 2)
    figure = Figure(figsize=(WIDTH, _HEIGHT + 0.2 * rows), layout="constrained")
    axes: Any = figure.subplots(2, 2)
    noise, rejection, integration, facts = axes.flat
    for ax, title, x, y in (
        (noise, "Noise robustness", "share of distractors", "right answers"),
        (rejection, "Negative rejection", "share of distractors", "lack of information"),
        (integration, "Information integration", "documents with evidence", "right answers"),
        (facts, "Counterfactual robustness", "fact in the documents", "share of answers"),
    ):
        ax.set_title(title, fontsize=9.5, loc="left")
        ax.set_xlabel(x, fontsize=8.5)
        ax.set_ylabel(y, fontsize=8.5)
        ax.tick_params(labelsize=8)
        ax.set_ylim(-0.03, 1.03)
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    labels = _documents(found)
    for i, system in enumerate(systems):
        colour, marker = LINE_COLOURS[i % len(LINE_COLOURS)], MARKERS[i % len(MARKERS)]
        if several:
            noise.plot([], [], marker + "-", color=colour, label=plain(system))
        for ax, ability, measure in ((noise, NOISE, "right"), (rejection, REJECTION, "lack")):
            curve = found.curve(system, ability, measure)
            rate = curve["condition"].astype(float)
            _band(ax, rate[rate < 1].to_numpy(), curve[rate < 1], colour, marker)
            # Without evidence all is otherwise: no line leads there.
            alone = curve[rate == 1]
            ax.errorbar(
                rate[rate == 1], alone["value"], yerr=_reach(alone), ls="", capsize=2, lw=1,
                marker=marker, ms=5, color=colour, mfc="white",
            )  # fmt: skip
        groups = found.curve(system, INTEGRATION, "right")
        groups = groups[groups["documents"] != "several"]
        places = np.array([labels.index(label) for label in groups["documents"]], dtype=float)
        _band(integration, places, groups, colour, marker)
        shift = 0.0 if not several else 0.3 * (i / (len(systems) - 1) - 0.5)
        for j, measure in enumerate(FACTS):
            curve = found.curve(system, COUNTERFACTUAL, measure)
            at = np.array([list(_CONDITIONS).index(c) for c in curve["condition"]], dtype=float)
            style = {"color": _FACT_COLOURS[measure], "marker": marker, "ms": 4, "lw": 1}
            facts.errorbar(at + shift + 0.07 * (j - 1), curve["value"], yerr=_reach(curve), ls="", capsize=2, **style)
    shown = ["5+" if label == MANY else label for label in labels]
    integration.set_xticks(np.arange(len(labels)), shown)
    facts.set_xticks(np.arange(len(_CONDITIONS)), list(_CONDITIONS.values()))
    facts.set_xlim(-0.5, len(_CONDITIONS) - 0.5)
    for ax in (noise, rejection):
        ax.set_xlim(-0.05, 1.05)
        ax.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1], ["0", "0.2", "0.4", "0.6", "0.8", "1"])
    for measure in FACTS:
        noise.plot([], [], "o", color=_FACT_COLOURS[measure], label=_FACT_NAMES[measure])
    for ax, ability in zip(axes.flat, (NOISE, REJECTION, INTEGRATION, COUNTERFACTUAL), strict=True):
        if ability in found.lacking:
            ax.text(0.5, 0.5, "not measured", transform=ax.transAxes, ha="center", color="#777777", fontsize=9)
    legend(figure, noise, 2)
    return figure


def _band(ax: Any, at: np.ndarray, curve: pd.DataFrame, colour: str, marker: str) -> None:
    by = np.argsort(at)
    at, value = at[by], curve["value"].to_numpy(dtype=float)[by]
    lo, hi = (curve[c].to_numpy(dtype=float)[by] for c in ("lo", "hi"))
    ax.plot(at, value, marker=marker, ms=4, lw=1.4, color=colour)
    ax.fill_between(at, lo, hi, color=colour, alpha=0.15, lw=0)


def _reach(curve: pd.DataFrame) -> np.ndarray:
    """How far the limits lie from the values, 0 where there are none."""
    value = curve["value"].to_numpy(dtype=float)
    lo, hi = (curve[c].to_numpy(dtype=float) for c in ("lo", "hi"))
    return np.nan_to_num(np.vstack([np.maximum(value - lo, 0), np.maximum(hi - value, 0)]))


def _documents(found: Abilities) -> list[str]:
    """The numbers of evidence documents, in order."""
    of = found.estimates
    labels = of.loc[(of["ability"] == INTEGRATION) & (of["documents"] != "several"), "documents"]
    return list(in_order(labels)) if len(labels) else []


def robustness_rows(found: Abilities | None) -> dict[str, Any]:
    """What the template of the section takes: {"robustness": None} without conditions.

    A table for each ability: its columns, and a row for every system and measure with a cell per column.
    """
    if found is None:
        return {"robustness": None}
    tables = []
    for ability in (NOISE, REJECTION, INTEGRATION, COUNTERFACTUAL):
        part = found.estimates[found.estimates["ability"] == ability]
        changed = found.changes[found.changes["ability"] == ability]
        by = "documents" if ability == INTEGRATION else "condition"
        columns = list(dict.fromkeys(part[by]))
        rows = [
            {
                "system": system,
                "measure": _MEASURES[str(measure)],
                "is_score": measure == "ir_score",
                "n": int(of["n"].max()),
                "missing": int(of["missing"].max()),
                "cells": [_cell(of[of[by] == column]) for column in columns],
            }
            for (system, measure), of in part.groupby(["system", "measure"], sort=False)
        ]
        shown = [row | {"measure": _MEASURES[row["measure"]]} for row in changed.to_dict("records")]
        title = "Documents with evidence" if by == "documents" else "Condition"
        tables.append(
            {
                "ability": ability[0].upper() + ability[1:],
                "by": title,
                "columns": columns,
                "rows": rows,
                "changes": shown,
                "lacking": found.lacking.get(ability),
            }
        )
    return {"robustness": {"tables": tables, "cut": _cut(found), "several": len(found.systems) > 1}}


def _cell(of: pd.DataFrame) -> dict[Any, Any] | None:
    found: list[dict[Any, Any]] = of.to_dict("records")
    return found[0] if found else None


def _cut(found: Abilities) -> float | None:
    """How much of the IR score is lost where there is most noise beside all evidence; None for nothing."""
    most = 0.0
    for system in found.systems:
        curve = found.curve(system, NOISE, "ir_score")
        curve = curve[curve["condition"].astype(float) < 1]
        if len(curve):
            most = max(most, float(curve["value"].max() - curve["value"].min()))
    return most if most > 0.01 else None


def robustness_text(found: Abilities) -> str:
    """The headlines on the terminal, a line a system, and what was not measured."""
    return "\n".join(_lines(found))


def _lines(found: Abilities) -> Iterator[str]:
    yield "robustness (RGB's four abilities; each interval holds by itself)"
    for system in found.systems:
        values = found.metrics(system)
        headlines = (
            ("right answers lost from no noise to 80 %", "robustness_noise_drop", formats.points),
            ("lack told with distractors alone", "robustness_rejection", formats.share),
            ("right with evidence in several documents", "robustness_integration", formats.share),
            *((f"changed fact: {m}", f"robustness_{m}", formats.share) for m in FACTS),
            *((f"truth beside it: {m}", f"robustness_contradicted_{m}", formats.share) for m in FACTS),
        )
        told = [
            f"{what} {f(values[name])} ({f(values[name + '_lo'])} to {f(values[name + '_hi'])})"
            for what, name, f in headlines
            if name in values
        ]
        yield f"  {system}: " + ("; ".join(told) or "nothing was measured")
    for ability, why in found.lacking.items():
        yield f"  {ability} was not measured: {why}"
