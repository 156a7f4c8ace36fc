"""Every measure by slice of the topics, averages over slices, and the two best systems compared by slice."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import column_label
from ragauge.contract.finding import (
    Block,
    Cell,
    Col,
    Finding,
    Fold,
    Found,
    Founds,
    Grid,
    Heading,
    Heads,
    JobFinding,
    Kind,
    Num,
    Section,
    Shown,
    Tagged,
    Text,
)
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.metrics import HEADLINES, METRICS, MISSING, capitalised
from ragauge.contract.outcomes import PREFIX
from ragauge.contract.record import JobRecord
from ragauge.estimate import summary
from ragauge.estimate.board import REJECTION
from ragauge.estimate.intervals import Estimate
from ragauge.estimate.slices import (
    ABOUT_SHRUNK,
    SliceTables,
    macro_averages,
    mixed_slicings,
    slice_differences,
    slice_estimates,
)
from ragauge.estimate.slicing import in_order, slicings
from ragauge.findings.tables import number
from ragauge.show.formats import whole

MAX_LOGGED = 50  # slices whose measures become metrics
LOGGED = ("ir_score", "correct_share", "hallucination_share", "judge_share_1", REJECTION)
_MAX_SLUG = 60  # characters of a name within a metric's


class SlicesFound(JobFinding):
    """Measures by slice.

    Metrics are `slice/<slicing>/<slice>/<measure>` with `_lo` and `_hi` and `topics`, of 50 slices at most,
    those of slicings with the fewest slices first, and `slice_macro/<slicing>/<measure>`.
    """

    name = "slices"

    def compute(self, job: Job, found: Founds) -> Found | None:
        """Number of slices; None without slices."""
        outcomes, answers = job.outcomes, job.answer_measures
        if not slicings(outcomes):
            return None
        estimates = slice_estimates(outcomes, None, answers, job.n_boot, job.seed)
        mixed = mixed_slicings(outcomes)
        averages = macro_averages(estimates, job.pipeline.slice_weights, answers, mixed=mixed)
        names = metric_names(outcomes)
        measures = {*LOGGED, *(info.name for info in answers)}
        return Found(
            len(names),
            metrics={**_of_slices(outcomes, estimates, measures, names), **_of_averages(averages, measures, names)},
            logged={"slices": estimates, "slice_averages": averages},
        )

    def show(self, job: Job, value: int, found: Founds) -> Shown:
        """A note if not all slices are metrics."""
        told = f"{value} slices; {MAX_LOGGED} of them are metrics; all are in slices.json"
        return Shown(lines=[told] if value > MAX_LOGGED else [])


def metric_names(outcomes: pd.DataFrame) -> dict[tuple[str, str], str]:
    """The prefix of the metrics of every slice, {(slicing, slice): slice/<slicing>/<slice>}, in order.

    MLflow allows letters, digits, _, -, . and spaces: other characters become _, and names that are then
    equal are numbered.
    """

    def distinct(names: Sequence[str]) -> Iterator[str]:
        taken: set[str] = set()
        for name in names:
            slug = own = re.sub(r"[^\w.\- ]+", "_", name)[:_MAX_SLUG].strip(" .") or "_"
            number = 1
            while slug in taken:
                number += 1
                slug = f"{own}_{number}"
            taken.add(slug)
            yield slug

    by = slicings(outcomes)
    found = {}
    for name, slug in zip(by, distinct(by), strict=True):
        labels = in_order(outcomes[PREFIX + name])
        for label, of_label in zip(labels, distinct(labels), strict=True):
            found[name, label] = f"slice/{slug}/{of_label}"
    return found


def logged_slices(names: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], str]:
    """The first 50 of `metric_names`, those of slicings with the fewest slices first."""
    count = Counter(by for by, _ in names)
    return dict(sorted(names.items(), key=lambda item: count[item[0][0]])[:MAX_LOGGED])


def metrics_of_slices(slices: pd.DataFrame | None, measures: Sequence[str]) -> list[str]:
    """The names of metrics that `SlicesFound` logs for these slices and answer measures."""
    names = {} if slices is None else metric_names(slices)
    macro = dict.fromkeys(f"slice_macro/{name.split('/')[1]}" for name in names.values())
    of_measures = [f"{name}{end}" for name in (*LOGGED, *measures) for end in ("", "_lo", "_hi")]
    logged = list(logged_slices(names).values())
    return [
        *(f"{name}/{what}" for name in logged for what in (*of_measures, "topics")),
        *(f"{name}/{what}" for name in macro for what in of_measures),
    ]


_Names = Mapping[tuple[str, str], str]


def _of_slices(outcomes: pd.DataFrame, estimates: pd.DataFrame, measures: set[str], names: _Names) -> dict[str, float]:
    logged = logged_slices(names)
    sizes = {(by, label): n for by in slicings(outcomes) for label, n in
             outcomes[PREFIX + by].value_counts().items()}  # fmt: skip
    values: dict[str, float] = {f"{name}/topics": int(sizes[at]) for at, name in logged.items()}
    for row in estimates.to_dict("records"):
        if row["measure"] in measures and (at := (row["slicing"], row["slice"])) in logged:
            values |= _metrics(f"{logged[at]}/{row['measure']}", row)
    return values


def _of_averages(averages: pd.DataFrame, measures: set[str], names: _Names) -> dict[str, float]:
    slug_of = {by: name.split("/")[1] for (by, _), name in names.items()}
    values: dict[str, float] = {}
    for row in averages.to_dict("records"):
        if row["measure"] in measures:
            values |= _metrics(f"slice_macro/{slug_of[row['slicing']]}/{row['measure']}", row)
    return values


def _metrics(name: str, row: Mapping[Any, Any]) -> dict[str, float]:
    return summary.with_interval(name, Estimate(row["value"], row["lo"], row["hi"], row["n"]))


_MAX_SYSTEMS, _MAX_SLICES = 10, 30  # that a table shows; all are in tables/slices.csv
_MEASURES = ("ir_score", "correct_share", "hallucination_share", MISSING, REJECTION)
Infos = Mapping[str, AnswerMeasureInfo]


class Slices(Finding):
    """The measures by kind of topic."""

    name = "slices"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`SliceTables`; None without slices."""
        board = found["leaderboard"].frame
        value = slice_tables(jobs.at_n, board, jobs.records[0], jobs.answer_measures, jobs.families.family)
        if value is None or value.estimates.empty:
            return None
        tables = {"slices": value.estimates, "slice_averages": value.averages}
        if value.differences is not None:
            tables["slice_differences"] = value.differences
        return Found(value, tables=tables)

    def show(self, jobs: Jobs, value: SliceTables, found: Founds) -> Shown:
        """A table for each slicing and measure, a column per system."""
        infos = {info.name: info for info in jobs.answer_measures}
        names = {name: capitalised(METRICS[name].label) for name in _MEASURES} | {
            REJECTION: capitalised(METRICS[REJECTION].words)
        }
        names |= {name: column_label(info) for name, info in infos.items()}
        if not value.some_missing:
            del names[MISSING]
        systems = found["leaderboard"].systems
        blocks: list[Block] = [_warning(jobs, value, names, len(systems))]
        for by, part in value.estimates.groupby("slicing", sort=False):
            blocks.append(Heading(f"By {by}"))
            averages = value.averages[value.averages["slicing"] == by]
            measures = [m for m in names if (part["measure"] == m).any()]
            for at, measure in enumerate(measures):
                of, mean = part[part["measure"] == measure], averages[averages["measure"] == measure]
                shown = _table(str(by), names[measure], of, mean, systems[:_MAX_SYSTEMS], _is_score(measure, infos))
                blocks += shown if at == 0 else [Fold(f"{names[measure]} by {by}", shown)]
            blocks += _pair(value.differences, str(by), infos, jobs.families.family)
        blocks.append(
            Text(
                f"{ABOUT_SHRUNK} The average over slices gives every slice the same weight unless `slice_weights` "
                "says otherwise; topics whose value is not known are in none of them. A difference between two slices "
                "is one between the topics that are in them, which may differ in more than the slice's name.",
                "small",
            )
        )
        return Shown([Section("Slices of the topics", blocks)])


def _is_score(measure: str, infos: Infos) -> bool:
    return measure == "ir_score" or (measure in infos and infos[measure].unit != "share")


def _warning(jobs: Jobs, value: SliceTables, names: Mapping[str, str], systems: int) -> Text:
    intervals = int(value.estimates["measure"].isin(list(names)).sum())
    slices = int(value.estimates.groupby("slicing")["slice"].nunique().sum())
    first = f", for the first {_MAX_SYSTEMS} of the {systems} systems of the leaderboard" * (systems > _MAX_SYSTEMS)
    small = (
        " The mark “small” is on slices with fewer than ten topics, which say little."
        if value.estimates["small"].any()
        else ""
    )
    return Text(
        f"Every measure by slice of the topics, at N = {jobs.n_tokens} tokens{first}. Slices are many: "
        f"{math.ceil(intervals / 20)} of {whole(intervals)} intervals over {slices} slices are expected to miss. The "
        f"highest and lowest of many slices owe part of their distance to chance.{small} All of it is in "
        "tables/slices.csv."
    )


def _table(
    by: str, title: str, rows: pd.DataFrame, averages: pd.DataFrame, systems: Sequence[str], is_score: bool
) -> list[Block]:
    """One measure: a row per slice with a cell per system, and the averages over slices."""
    kind: Any = "score" if is_score else "share"
    sizes = rows.groupby("slice", sort=False)["n"].max()
    largest = set(sizes.sort_values(ascending=False, kind="stable").index[:_MAX_SLICES])
    cells = {(row["slice"], row["system"]): row for row in rows.to_dict("records")}
    of_system = {row["system"]: row for row in averages.to_dict("records")}

    def cells_of(e: Mapping[Any, Any] | None) -> list[Cell]:
        return [number(e or {}, name, kind) for name in ("value", "shrunk")]

    lines: list[list[Cell]] = []
    for label, n in sizes.items():
        if label in largest:
            small = "small" if rows.loc[rows["slice"] == label, "small"].any() else ""
            of = [cell for system in systems for cell in cells_of(cells.get((label, system)))]
            lines.append([Tagged(str(label), small, "none"), Num(n, "whole"), *of])
    if of_system:
        averaged = max(int(row["slices"]) for row in of_system.values())
        of = [cell for system in systems for cell in (cells_of(of_system.get(system))[0], "")]
        lines.append([f"average over {averaged} slices", "", *of])
    pairs = [col for system in systems for col in (Col(system, "alone"), Col(system, "shrunk"))]
    grid = Grid(f"{title} by {by}", [Col(title), "Topics", *pairs], lines)
    more = len(sizes) - _MAX_SLICES
    note = Text(f"{more} slices with fewer topics are in tables/slices.csv alone.", "small")
    return [grid, note] if more > 0 else [grid]


def _pair(differences: pd.DataFrame | None, by: str, infos: Infos, family: str) -> list[Block]:
    """The two best systems by slice of one slicing; nothing without a compared slice."""
    if differences is None or not (differences["slicing"] == by).any():
        return []
    rows = differences[differences["slicing"] == by]
    measures = {name: capitalised(METRICS[name].difference) for name in HEADLINES if (rows["measure"] == name).any()}
    measures |= {
        name: column_label(info) + (", points" if info.unit == "share" else "")
        for name, info in infos.items()
        if (rows["measure"] == name).any()
    }
    found = {(row["slice"], row["measure"]): row for row in rows.to_dict("records")}
    a, b = rows["a"].iloc[0], rows["b"].iloc[0]
    lines: list[list[Cell]] = []
    for label in list(dict.fromkeys(rows["slice"]))[:_MAX_SLICES]:
        cells = [cell for m in measures for cell in _difference(found.get((label, m)), _is_score(m, infos))]
        n = max(row["n"] for (at, _), row in found.items() if at == label)
        lines.append([str(label), Num(n, "whole"), *cells])
    heads = [col for title in measures.values() for col in (Col(title, "alone"), Col(title, "shrunk"))]
    columns: Heads = ["Slice", "Topics", *heads]
    tests = int(differences["p"].notna().sum())
    of = "of all measures together" if family == "all" else "of the measure"
    about = Text(
        "The first two systems of the leaderboard, topic by topic, in slices of ten topics or more. † marks a "
        f"difference that remains after Holm's correction over all slices {of} (p < 0.05); there are {tests} tests.",
        "small",
    )
    return [Fold(f"{a} less {b} by {by}", [about, Grid(f"Differences by {by}", columns, lines)])]


def _difference(e: Mapping[Any, Any] | None, is_score: bool) -> list[Cell]:
    """The difference in a slice, raw and shrunk."""
    mark = "†" if e is not None and e["p_holm"] < 0.05 else ""
    kind: Kind = "signed" if is_score else "points"
    return [number(e or {}, "difference", kind, mark), number(e or {}, "shrunk", kind)]


def slice_tables(
    rows: pd.DataFrame,
    board: pd.DataFrame,
    record: JobRecord,
    answers: Sequence[AnswerMeasureInfo],
    family: str = "measure",
) -> SliceTables | None:
    """The slices of a sweep's systems at one budget, and the differences of its two best systems by slice.

    The two best are the first two of the leaderboard. None where the jobs have no slices in common.
    """
    if not slicings(rows):
        return None
    n_boot, seed = record.bootstrap, record.seed
    estimates = slice_estimates(rows, "system", answers, n_boot, seed)
    averages = macro_averages(estimates, record.slice_weights, answers, mixed=mixed_slicings(rows))
    best = board["system"].tolist()[:2]
    pair = None
    if len(best) == 2:
        pair = slice_differences(rows, best[0], best[1], "system", answers, seed, family=family)
    return SliceTables(estimates, averages, pair)
