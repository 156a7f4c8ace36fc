"""The page of recorded outcomes: their estimates, and what these say of systems that were not judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ragauge.contract.finding import Block, Card, Cell, Col, Grid, Heading, Heads, Num, Picture, Section, Tagged, Text
from ragauge.estimate.summary import Estimates
from ragauge.findings.predictor import predictor_line
from ragauge.findings.thresholds import SIDES, threshold_line
from ragauge.findings.what_ran import versions
from ragauge.findings.zones import zone_blocks, zones_line
from ragauge.show.drawing import LINE_COLOURS, legend, legend_rows, new_figure, plain
from ragauge.show.figures import sorted_scores
from ragauge.show.formats import score
from ragauge.show.html import Page

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def page(
    experiment: str,
    note: str,
    judged: pd.DataFrame,
    estimates: Estimates,
    systems: pd.DataFrame,
    foreseen: pd.DataFrame,
    alphas: pd.DataFrame,
) -> Page:
    """The report.

    judged: the outcomes that have verdicts. systems: [system, n, ir_score, right, lack]. foreseen: the table of
    `foresee`; alphas: [alpha, zone, threshold, share, missed].
    """
    title = f"{experiment}: recorded outcomes, and their thresholds"
    figures = {"sorted_scores": sorted_scores(judged, estimates.thresholds, title, estimates.zones)}
    if len(foreseen):
        figures["foreseen"] = foreseen_figure(foreseen)
    sections = [
        Section("What was recorded", [*([Text(note)] if note else []), *_recorded(systems)]),
        Section("Zones with a guarantee", [*zone_blocks(estimates.zones), *_alphas(alphas)]),
        Section("Thresholds and predictor", _worth(estimates)),
        *([Section("Systems that nobody judged here", _foreseen(foreseen))] if len(foreseen) else []),
    ]
    about = " · ".join(f"{name} {version}" for name, version in versions().items())
    cards: list[Card] = []
    return Page(
        "recorded outcomes", experiment, f"{experiment}: recorded outcomes", about, 0, [], cards, sections, figures
    )


def lines(estimates: Estimates) -> list[str]:
    """Thresholds, zones and predictor on the terminal."""
    both = [threshold_line(letter, says, getattr(estimates.thresholds, letter)) for letter, says in SIDES]
    return [*both, zones_line(estimates.zones), predictor_line(estimates.validation)]


def _recorded(systems: pd.DataFrame) -> list[Block]:
    columns = "System | Answers | IR score | Right | Lack"
    rows: list[list[Cell]] = [
        [
            str(row["system"]),
            Num(row["n"], "whole"),
            Num(row["ir_score"]),
            Num(row["right"], "share"),
            Num(row["lack"], "share"),
        ]
        for row in systems.to_dict("records")
    ]
    alt = "IR scores in rising order, coloured by judge class, with thresholds and zones"
    return [Grid("Systems", columns, rows), Picture("sorted_scores", alt)]


def _alphas(alphas: pd.DataFrame) -> list[Block]:
    columns = "At most missed | <Zone | Threshold | Answers in it | Missed here"
    rows: list[list[Cell]] = [
        [
            Num(row["alpha"], "share"),
            "right, above" if row["zone"] == "right" else "lack, below",
            score(row["threshold"]) if row["threshold"] == row["threshold"] else "none",
            Num(row["share"], "share"),
            Num(row["missed"], "share"),
        ]
        for row in alphas.to_dict("records")
    ]
    return [
        Heading("What other promises would give"),
        Grid("Zones by what may be missed", columns, rows),
        Text("Each row holds by itself; choosing among rows after looking does not.", "small"),
    ]


def _worth(estimates: Estimates) -> list[Block]:
    columns = "Threshold | Value | Not rejected | Accuracy / on the fit | Constant guess | Gain / unseen topics, points"
    rows: list[list[Cell]] = []
    for letter, says in SIDES:
        t = getattr(estimates.thresholds, letter)
        note = f"; degenerate: says “{t.degenerate}”" if t.degenerate else ""
        gain = Num(t.gain.value, "points", t.gain.lo, t.gain.hi, "useful" if t.useful else "")
        rows.append(
            [
                Tagged(letter, below=says + note),
                Num(t.value, "score", t.lo, t.hi),
                f"{score(t.set_min)} to {score(t.set_max)}",
                Num(t.accuracy, "share"),
                Num(t.base_rate, "share"),
                gain,
            ]
        )
    e = estimates.validation.estimates
    right, lack, loss = (
        f"{score(e[name].value)} ({score(e[name].lo)} to {score(e[name].hi)})"
        for name in ("auc_correct", "auc_lack", "log_loss")
    )
    return [
        Grid("Thresholds", columns, rows),
        Text(
            f"Predictor, on topics that it had not seen: AUC of right {right}, of lack {lack}; log loss {loss}, "
            f"without the score {score(e['log_loss_base'].value)}."
        ),
    ]


def _foreseen(table: pd.DataFrame) -> list[Block]:
    ways = ("predictor", "thresholds", "unchanged", "judged")
    columns: Heads = ["System", "<Share", *(Col(way.capitalize()) for way in ways)]
    rows: list[list[Cell]] = [
        [str(row["system"]), str(row["share"]), *(Num(row[way], "share") for way in ways)]
        for row in table.to_dict("records")
    ]
    return [
        Text(
            "The predictor and the thresholds were fitted on the judged answers above and applied to the scores of "
            "other systems. “Unchanged” takes the judged system's shares as they are."
        ),
        Picture("foreseen", "Right answers of each system: judged, predicted, and the share of scores above k"),
        Grid("Foreseen shares", columns, rows),
    ]


def foreseen_figure(table: pd.DataFrame) -> Figure:
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
