"""Metrics of jobs that no other finding shows, by their declarations: lines of the terminal, a table of the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from ragauge.contract.finding import Cell, Col, Finding, Found, Founds, Grid, Section, Shown, Text
from ragauge.contract.jobs import Jobs
from ragauge.contract.metrics import Metric, capitalised, metrics_in
from ragauge.findings.order import job_findings
from ragauge.findings.tables import number
from ragauge.show.formats import interval, written


class AlsoLogged(Finding):
    """The labelled metrics of the jobs that are in no other table."""

    name = "also_logged"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """The metrics that some job of the sweep's budget has; None without any. A row per system as a table."""
        logged = _at_n(jobs)
        declared = [metric for finding in job_findings() for metric in finding.metrics]
        shown = [one for one in unshown(declared) if any(one.name in metrics for metrics in logged.values())]
        if not shown:
            return None
        ends = [name + end for name in (one.name for one in shown) for end in ("", "_lo", "_hi")]
        frame = pd.DataFrame([{"system": system, **metrics} for system, metrics in logged.items()])
        return Found(shown, tables={"also_logged": frame[["system", *(name for name in ends if name in frame)]]})

    def show(self, jobs: Jobs, value: list[Metric], found: Founds) -> Shown:
        """A row per system, a column per metric."""
        columns = [Col(capitalised(one.label), f"{one.better} is better" if one.better else "") for one in value]
        rows: list[list[Cell]] = [
            [system, *(number(metrics, one.name, one.unit) for one in value)] for system, metrics in _at_n(jobs).items()
        ]
        about = Text(f"Further metrics of the findings, at N = {jobs.n_tokens} tokens.")
        return Shown([Section("Further metrics", [about, Grid("Further metrics", ["System", *columns], rows)])])


def _at_n(jobs: Jobs) -> dict[str, Mapping[str, Any]]:
    """The metrics of each system's job at the sweep's budget."""
    return {system: by_n.get(jobs.n_tokens, {}) for system, by_n in jobs.metrics_by_system().items()}


def unshown(declared: Iterable[Metric | str]) -> list[Metric]:
    """The labelled metrics that terminal and report show by their declarations."""
    return [one for one in metrics_in(declared) if one.label and one.listed == "everywhere" and not one.chart]


def lines_of(declared: Iterable[Metric | str], values: Mapping[str, float]) -> list[str]:
    """A line for each of the values that only its declaration shows: `long contexts 43.0 % (40.1 % to 46.2 %)`."""
    numbers = [(one, number(values, one.name, one.unit)) for one in unshown(declared) if one.name in values]
    return [
        f"  {one.label} {written(of.value, of.kind)}" + (f" ({interval(of)})" if interval(of) else "")
        for one, of in numbers
    ]
