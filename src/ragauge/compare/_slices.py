"""Runs by slice of the topics, and their differences from the baseline in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragauge.compare._metrics import ALPHA, chosen_measures
from ragauge.contract.answer_measures import column_label
from ragauge.contract.finding import (
    DIFFERS,
    Cell,
    Col,
    ComparisonFinding,
    Found,
    Founds,
    Grid,
    Kind,
    Num,
    Section,
    Shown,
)
from ragauge.contract.jobs import Compared
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.metrics import HEADLINES, METRICS, MISSING
from ragauge.contract.outcomes import PREFIX
from ragauge.estimate.pairs import corrected
from ragauge.estimate.slices import (
    ABOUT_SHRUNK,
    SliceTables,
    macro_averages,
    mixed_slicings,
    slice_differences,
    slice_estimates,
)
from ragauge.estimate.slicing import slicings

# Of a slice: a metric and the measure of its difference.
_MEASURES = {**{metric.name: measure for measure, metric in HEADLINES.items()}, MISSING: ""}


@dataclass(frozen=True)
class Sliced:
    """tables: runs by slice (column run_id) and their differences from the baseline (`a` the run); None if slices
    were not requested or the runs share none. note: a sentence on that.
    """

    tables: SliceTables | None
    note: str


class BySlice(ComparisonFinding):
    """The runs by slice, if requested."""

    name = "slices"

    def compute(self, runs: Compared, found: Founds) -> Found | None:
        """`Sliced`; None if there are no slices and none were requested."""
        there = slicings(runs.outcomes)
        if not runs.slices:
            told = f"The runs have slices by {', '.join(there)}: --slices shows them."
            return Found(Sliced(None, told)) if there else None
        if not there:
            return Found(Sliced(None, "The compared runs have no slices in common (slices=[type])."))
        count = sum(runs.outcomes[PREFIX + by].nunique() for by in there)
        told = (
            f"Slices are many ({count}): Holm's correction counts those of all runs with ten topics or more, "
            f"and of twenty intervals expect one to miss. {ABOUT_SHRUNK}"
        )
        family = runs.families.family
        tables = slice_tables(runs.outcomes, runs.baseline, runs.answer_measures, runs.n_boot, runs.seed, family)
        return Found(Sliced(tables, told))

    def show(self, runs: Compared, value: Sliced, found: Founds) -> Shown:
        """A row for every slice and run."""
        if value.tables is None:
            return Shown(notes=[value.note])
        heading = f"By slice of the topics, differences from {runs.names[runs.baseline]}"
        return Shown([Section(heading, [_grid(value.tables, runs)])], notes=[value.note])


def slice_tables(
    outcomes: pd.DataFrame, base: str, answers: Sequence[AnswerMeasureInfo], n_boot: int, seed: int, family: str
) -> SliceTables | None:
    """Every run by slice (column run_id), and its differences from the baseline; None if the runs share no slicing.

    Holm's correction counts the slices of all runs.
    """
    if not slicings(outcomes):
        return None
    estimates = slice_estimates(outcomes, "run_id", answers, n_boot, seed)
    others = [run_id for run_id in outcomes["run_id"].unique() if run_id != base]
    every = pd.concat(
        [slice_differences(outcomes, run_id, base, "run_id", answers, seed) for run_id in others],
        ignore_index=True,
    )
    averages = macro_averages(estimates, None, answers, mixed=mixed_slicings(outcomes))
    return SliceTables(estimates, averages, corrected(every, family))


def _grid(found: SliceTables, runs: Compared) -> Grid:
    """Per slice and run: topics, each measure with its interval, and its difference from the baseline."""
    named = {name: (METRICS[name].label, of) for name, of in _MEASURES.items()}
    shown = {info.name: (column_label(info), info.name) for info in chosen_measures(runs.answer_measures)}
    measures = {m: titles for m, titles in (named | shown).items() if (found.estimates["measure"] == m).any()}
    if not found.some_missing:
        measures.pop(MISSING, None)
    values = {
        (row["slicing"], row["slice"], row["run_id"], row["measure"]): row for row in found.estimates.to_dict("records")
    }
    rows_of = [] if found.differences is None else found.differences.to_dict("records")
    differences = {(row["slicing"], row["slice"], row["a"], row["measure"]): row for row in rows_of}
    columns = [Col("by"), Col("slice", left=True), Col("run", left=True), Col("topics")]
    for title, _ in measures.values():
        columns += [
            Col(title),
            Col(f"{title}, shrunk"),
            Col(f"{title}, difference"),
            Col(f"{title}, difference, shrunk"),
        ]
    rows: list[list[Cell]] = []
    for at in dict.fromkeys(key[:3] for key in values):
        by, label, run_id = at
        own = {m: values[*at, m] for m in measures if (*at, m) in values}
        cells: list[Cell] = [by, label, runs.names[run_id]]
        cells.append(Num(max((row["n"] for row in own.values()), default=0), "whole"))
        for measure, (_, pair) in measures.items():
            value, difference = own.get(measure), differences.get((*at, pair))
            differs = DIFFERS if difference is not None and difference["p_holm"] < ALPHA else ""
            cells += _cells(value or {}, "value", "score", "")
            cells += _cells(difference or {}, "difference", "signed", differs)
        rows.append(cells)
    return Grid("Runs by slice", columns, rows)


def _cells(row: Mapping[Any, Any], name: str, kind: Kind, tag: str) -> list[Cell]:
    """A number of a slice, raw and shrunk, each with its interval."""
    alone = Num(row.get(name), kind, row.get("lo"), row.get("hi"), tag)
    return [alone, Num(row.get("shrunk"), kind, row.get("shrunk_lo"), row.get("shrunk_hi"))]
