"""Chooses a comparison's metrics, their titles and directions; the finding that shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import pandas as pd

from ragauge.compare._sources import some
from ragauge.contract.answer_measures import besides_rankings, column_label
from ragauge.contract.errors import ConfigError
from ragauge.contract.finding import (
    BEST,
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
from ragauge.contract.metrics import CLASSICS, LEAST_JUDGED, MEASURE_OF, MISSING, OF_VERDICTS, ORDER, Metric
from ragauge.findings.order import declared, job_findings
from ragauge.measures.rankings import CLASSIC_NAMES, metric_of

ALPHA = 0.05
_KEYS = ("run_id", "run", "system", "n_tokens", "compared")  # columns of the runs that are no metrics


def chosen_measures(answers: Sequence[AnswerMeasureInfo]) -> list[AnswerMeasureInfo]:
    """The measures shown by default: all except those of rankings, which every job has."""
    kept = {info.name for info in besides_rankings(answers)}
    return [info for info in answers if info.name in kept or info.name not in CLASSIC_NAMES]


@cache
def declared_metrics() -> Mapping[str, Metric]:
    """The metrics with a label, by name, in the order of a comparison."""
    found = {one.name: one for one in (*CLASSICS, *declared(job_findings()).values()) if one.label and not one.chart}
    return dict(sorted(found.items(), key=lambda item: ORDER.index(item[1].group or "")))


def choose_metrics(runs: Compared, asked: str | None = None, everything: bool = False) -> list[str]:
    """The metrics to show: those in `asked` (comma-separated names), all, or a default few.

    The few are those that some run has, and costs only where something was paid. ConfigError for a name that
    no run has.
    """
    values = runs.runs.drop(columns=list(_KEYS), errors="ignore")
    known = [c for c in map(str, values) if values[c].notna().any()]
    own = [name for name, metric in declared_metrics().items() if metric.listed != "on request"]
    measures = (info.name for info in chosen_measures(runs.answer_measures))
    default = list(dict.fromkeys((*own, *measures, *runs.package_metrics)))
    if everything:
        ends = {f"{c}{end}" for c in known for end in ("_lo", "_hi")}
        return [*(c for c in default if c in known), *(c for c in known if c not in {*ends, *default})]
    if asked is None:
        return [c for c in default if c in known and (not c.endswith("cost_usd") or values[c].gt(0).any())]
    chosen = list(
        dict.fromkeys(name.strip() if name.strip() in known else metric_of(name.strip()) for name in asked.split(","))
    )
    unknown = [name for name in chosen if name not in known]
    if unknown:
        names = ", ".join(c for c in known if not c.endswith(("_lo", "_hi")))
        raise ConfigError(f"--metrics: no run has {unknown[0]!r}; there are {names}")
    if MISSING in known and values[MISSING].gt(0).any() and {*chosen} & {*OF_VERDICTS}:
        chosen = list(dict.fromkeys([*chosen, MISSING]))
    return chosen


def title_of(metric: str, answers: Mapping[str, AnswerMeasureInfo]) -> str:
    """The title of a metric; `answers` are the answer measures by name."""
    if (own := declared_metrics().get(metric)) is not None:
        return own.label
    return column_label(answers[metric]) if metric in answers else metric


class MetricsLogged(ComparisonFinding):
    """The logged metrics of every run, marked by the tests of earlier findings."""

    name = "metrics"

    def compute(self, runs: Compared, found: Founds) -> Found | None:
        """Number of topics with a value [run_id x measure], for answer measures with missing values."""
        counts = {
            info.name: runs.outcomes[info.name].notna().groupby(runs.outcomes["run_id"], sort=False).sum()
            for info in besides_rankings(runs.answer_measures)
        }
        return Found(pd.DataFrame(counts))

    def show(self, runs: Compared, value: pd.DataFrame, found: Founds) -> Shown:
        """A row per run, further measures in a table of their own; the best is marked."""
        answers = {info.name: info for info in runs.answer_measures}
        beside = [name for name in runs.metrics if name in answers and name not in declared_metrics()]
        parts = {"Metrics": [name for name in runs.metrics if name not in beside], "Measures": beside}
        common = runs.common
        on = f" on {common['dataset']}" if "dataset" in common else ""
        topics = f", {common['topics']} topics" if "topics" in common else ""
        at = "" if runs.n_tokens is None else f", N = {runs.n_tokens} tokens"
        sections = [
            Section(heading, [_grid(f"{heading} of RAG systems{on}{topics}{at}", runs, names, answers, found)])
            for heading, names in parts.items()
            if names
        ]
        notes = []
        if runs.several_budgets:
            notes.append("The best is that among the runs of one N; only those of one N make pairs.")
        return Shown(sections, notes=[*notes, *_notes_on_values(runs, value, answers)])


def _grid(
    label: str, runs: Compared, names: Sequence[str], answers: Mapping[str, AnswerMeasureInfo], found: Founds
) -> Grid:
    table = runs.runs
    tested = found["pairs"].table
    p = dict(zip(zip(tested["run_id"], tested["measure"], strict=True), tested["p_holm"], strict=True))
    columns = [_column(runs, name, answers, p) for name in names]
    keys: list[list[Cell]] = [[run, run_id[:8]] for run, run_id in zip(table["run"], table["run_id"], strict=True)]
    rows: list[list[Cell]] = []
    budgets = table["n_tokens"].tolist()
    for at, (key, *cells) in enumerate(zip(keys, *columns, strict=True)):
        if runs.several_budgets and at and budgets[at] != budgets[at - 1]:
            rows.append([])
        rows.append([*key, *cells])
    return Grid(
        label, [Col("run"), Col("id", left=True, on_paper=False), *(title_of(name, answers) for name in names)], rows
    )


def _column(
    runs: Compared, name: str, answers: Mapping[str, AnswerMeasureInfo], p: Mapping[tuple[str, str], float]
) -> list[Num]:
    """A metric's values with intervals; the best per budget and significant differences are marked."""
    table = runs.runs
    values = table[name]
    known = values.dropna()
    is_whole = len(known) > 0 and bool((known % 1 == 0).all()) and bool((known.abs() > 1).any())
    own = declared_metrics().get(name)
    kind: Kind = "whole" if is_whole else "usd" if name.endswith("cost_usd") else "score"
    best = pd.Series(False, index=table.index)
    if better := own.better if own is not None else answers[name].direction if name in answers else "":
        is_lower = better == "lower"
        ranked = values
        if name in OF_VERDICTS:  # what has no verdict counts against a run, and mostly unknown shares are not compared
            missing = table.get(MISSING, pd.Series(0.0, index=table.index)).fillna(0.0)
            ranked = (values + missing if is_lower else values).where(missing <= 1 - LEAST_JUDGED)
        by_budget = ranked.groupby(table["n_tokens"] if runs.several_budgets else pd.Series(0, index=table.index))
        # Where all are equal, none is best.
        top = by_budget.transform("min" if is_lower else "max")
        best = ranked.eq(top) & (by_budget.transform("min") < by_budget.transform("max"))
    nan = pd.Series(float("nan"), index=table.index)
    lows, highs = (table.get(f"{name}_{end}", nan) for end in ("lo", "hi"))
    differs = [p.get((run_id, MEASURE_OF.get(name, name)), 1.0) < ALPHA for run_id in table["run_id"]]
    rows = zip(values, lows, highs, best, differs, strict=True)
    return [Num(v, kind, lo, hi, f"{BEST * bool(b)} {DIFFERS * d}".strip()) for v, lo, hi, b, d in rows]


def _notes_on_values(runs: Compared, counts: pd.DataFrame, answers: Mapping[str, AnswerMeasureInfo]) -> list[str]:
    """How many topics each run's mean has, for answer measures with missing values; measures alike share a sentence."""
    topics = runs.outcomes.groupby("run_id", sort=False)["qid"].size()
    of_list: dict[str, list[str]] = {}
    for name in map(str, counts):
        n = counts[name]
        if (n < topics).any():
            found = {str(run_id): f"{n[run_id]} of {topics[run_id]}" for run_id in n.index}
            alike = len(found) > 1 and len({*found.values()}) == 1
            listed = [f"{one} in {runs.names[run_id]}" for run_id, one in found.items()]
            words = f"{next(iter(found.values()))} in every run" if alike else some(listed)
            of_list.setdefault(words, []).append(answers[name].label)
    return [
        f"Topics with a value of {', '.join(labels)}: {words}; a mean is over these, a pair over those of both."
        for words, labels in of_list.items()
    ]
