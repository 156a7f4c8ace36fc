"""The finding of a raced sweep: which systems were dropped when and why, and the final results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge.contract.finding import Cell, Finding, Found, Founds, Grid, Num, Picture, Section, Shown, Text
from ragauge.contract.jobs import Jobs
from ragauge.contract.metrics import Metric
from ragauge.contract.visible import table as text_table
from ragauge.plugins.race.sweeping import RACE_FILE
from ragauge.show.drawing import LINE_COLOURS, legend, legend_rows, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHT = 2.8  # inches
_DRAWN = 7  # systems with a colour of their own


class RaceFound(Finding):
    """The course of the race in the sweep's folder."""

    name = "race"
    after = "leaderboard"
    metrics = (
        Metric("race_topics", "topics that the best system of a race was answered on"),
        Metric("race_share_of_answers", "answers that a race paid for, of those of all topics (0 to 1)"),
    )

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """The table of `table_of`, and the file of the race."""
        race = _race_of(jobs)
        if race is None or race["best"] is None:
            return None
        table = table_of(race, _names(jobs))
        n_systems = len(race["results"]) + len(set(race["failed"]) - {row["system"] for row in race["results"]})
        share = race["answers"] / (n_systems * race["n_topics"])
        topics = next(row["topics"] for row in race["results"] if row["system"] == race["best"])
        metrics = {"race_topics": float(topics), "race_share_of_answers": share}
        return Found((race, table, share), metrics, tables={"race": table}, logged={"race": table})

    def show(self, jobs: Jobs, value: tuple[Mapping[str, Any], pd.DataFrame, float], found: Founds) -> Shown:
        """The table, the bounds over topics, and a note that the other intervals ignore the race."""
        race, table, share = value
        lead = (
            f"Race by {race['measure']}, margin {race['margin']:g}, {race['n_topics']:,} topics: {race['why']}; "
            f"{share:.0%} of the answers of all topics."
        )
        says = (
            f"A system was dropped when it was known to lead no other by more than {race['margin']:g}. One that leads "
            f"all others by more is dropped with probability at most {race['alpha']:.0%}, however many systems race. "
            "Means and differences are over the topics that a system answered. Intervals are about all "
            f"{race['n_topics']:,} topics, and hold although the race stopped when it did."
        )
        columns = "System | Topics | Mean | <Out | Difference from the best"
        rows: list[list[Cell]] = [
            [
                str(row["system"]),
                Num(row["topics"], "whole"),
                Num(row["mean"], "score", row["low"], row["high"]),
                str(row["out"]),
                "best"
                if row["best"]
                else Num(row["difference"], "signed", row["difference_low"], row["difference_high"]),
            ]
            for row in table.to_dict("records")
        ]
        figure = bounds_figure(race, _names(jobs))
        picture = Picture(
            "race",
            "Upper bound of each system's lead over topics, with the margin",
            "Upper bound of each system's lead over the best other. It is dropped once that is at most the margin.",
        )
        notes = [
            "The systems raced: intervals of other tables suppose that the number of topics was fixed beforehand. "
            "Those of the race's table do not."
        ]
        earlier = [Text(f"{race['note'][0].upper()}{race['note'][1:]}.", "note")] if race["note"] else []
        blocks = [Text(says), *earlier, Grid("Race", columns, rows)]
        return Shown(
            [Section("Race", [Text(lead), *blocks, picture])],
            [f"\n{lead}\n{_lines(table)}"],
            {"race": figure},
            notes=notes,
        )


def table_of(race: Mapping[str, Any], names: Mapping[int, str]) -> pd.DataFrame:
    """A row per system, best mean difference first.

    [system, topics, mean, low, high, difference, difference_low, difference_high, out, best]; `out` says after how
    many topics it was dropped, and why.
    """
    rows = pd.DataFrame(race["results"])
    numbers = rows["system"]
    rows["system"] = [names.get(number, f"job {number}") for number in numbers]
    rows["out"] = [_out(race, number) for number in numbers]
    rows["best"] = numbers == race["best"]
    return rows.sort_values(["best", "difference"], ascending=False, kind="stable", ignore_index=True)


def _out(race: Mapping[str, Any], number: int) -> str:
    if number in race["failed"]:
        return "failed"
    gone = race["dropped"].get(str(number))
    return "" if gone is None else f"after {gone['n']:,}, {gone['why']}"


def _lines(table: pd.DataFrame) -> str:
    rows = [["system", "topics", "mean", "difference from the best", "out"]]
    for row in table.to_dict("records"):
        apart = "" if row["best"] else _interval(row, "difference", "difference_low", "difference_high", "+.3f")
        rows.append(
            [str(row["system"]), f"{row['topics']:,}", _interval(row, "mean", "low", "high"), apart, row["out"]]
        )
    return text_table(rows)


def _interval(row: Mapping[Any, Any], mean: str, low: str, high: str, form: str = ".3f") -> str:
    return f"{row[mean]:{form}} [{row[low]:{form}}, {row[high]:{form}}]"


def bounds_figure(race: Mapping[str, Any], names: Mapping[int, str]) -> Figure:
    """Upper bounds of leads over topics, a line per system until it is dropped, and the margin."""
    lines: dict[int, list[tuple[int, float]]] = {}
    for look in race["looks"]:
        for number, upper in look["upper"].items():
            if upper < 1:  # nothing is known yet
                lines.setdefault(int(number), []).append((look["n"], upper))
    shown = sorted(lines, key=lambda number: -len(lines[number]))
    figure, axes = new_figure(_HEIGHT, legend_rows(min(len(shown), _DRAWN) + 2, 2))
    axes.axhline(race["margin"], color="#444444", lw=1, ls="--", label=f"margin {race['margin']:g}")
    for place, number in enumerate(shown):
        own = place < _DRAWN
        label = plain(names.get(number, f"job {number}")) if own else ("others" if place == _DRAWN else None)
        colour = LINE_COLOURS[place] if own else "#BBBBBB"
        axes.plot(*zip(*lines[number], strict=True), marker=".", ms=7, lw=1.2, color=colour, label=label)
    axes.set_xlabel("topics answered")
    axes.set_ylabel("upper bound of the lead")
    axes.grid(alpha=0.25)
    legend(figure, axes, 2)
    return figure


def _names(jobs: Jobs) -> dict[int, str]:
    """The system of each job by its number; with its budget if a system has several."""
    records = [*jobs.records, *jobs.failed]
    systems = [record.system or record.name for record in records]
    several = len(set(systems)) < len(systems)
    return {
        record.number: f"{system} · N={record.n_tokens}" if several else system
        for record, system in zip(records, systems, strict=True)
    }


def _race_of(jobs: Jobs) -> dict[str, Any] | None:
    """The race of these jobs' attempt at the sweep; None if they did not race."""
    record = jobs.records[0]
    file = record.folder.parent / RACE_FILE
    if not file.is_file():
        return None
    race: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return race if race["attempt"] == record.attempt else None
