"""Rows of docs/method.md's table of metrics that findings declare themselves."""

from __future__ import annotations

from ragauge.contract.metrics import Metric, spelled
from ragauge.findings.of_sweeps import findings
from ragauge.findings.order import job_findings


def described() -> list[Metric]:
    """The metrics of all findings, those of packages too, that say what they are."""
    metrics = [metric for finding in (*job_findings(), *findings()) for metric in finding.metrics]
    return [metric for metric in metrics if isinstance(metric, Metric) and metric.what]


def with_rows(markdown: str) -> str:
    """The page, with a row for each of these behind the last row of the table."""
    rows = [f"| {_names(metric)} | {metric.what} | {metric.checked_by} |\n" for metric in described()]
    return markdown.replace("\n\n## Sources", f"\n{''.join(rows)}\n## Sources", 1) if rows else markdown


def _names(metric: Metric) -> str:
    return ", ".join(f"`{name}`" for name in spelled([metric], metric.chart))
