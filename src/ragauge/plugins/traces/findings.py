"""Findings on a window of traces: counts of the window, and metrics by day."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pandas as pd

from ragauge.contract.datasets import Monitored
from ragauge.contract.finding import Found, Founds, JobFinding, Shown
from ragauge.contract.jobs import Job
from ragauge.contract.metrics import Metric
from ragauge.estimate.outcomes import asked, labels_of, share_columns, weights_of, with_classes

_DAY = "day"  # the attribute that holds a date
_SHARES = ("correct_share", "hallucination_share", "judge_share_1", "judge_share_missing")


class Window(JobFinding):
    """Counts of the window by a dataset that monitors a system in use, such as traces that failed."""

    name = "window"
    after = "scores"
    metrics = ("traces_{failed,without_retriever,rounds}",)

    def compute(self, job: Job, found: Founds) -> Found | None:
        """The metrics; None for any other dataset."""
        source = job.pipeline.components.dataset
        if not isinstance(source, Monitored):
            return None
        counts = source.window_metrics(job.frame("topics"))
        return Found(counts, metrics=counts)

    def show(self, job: Job, value: Mapping[str, float], found: Founds) -> Shown:
        """The warnings of the dataset."""
        source = job.pipeline.components.dataset
        return Shown(notes=source.window_warnings(value) if isinstance(source, Monitored) else [])


class Days(JobFinding):
    """Shares of classes, the mean IR score and means of answer measures of each day of the topics."""

    name = "days"
    metrics = (Metric("*_at_day", chart=True),)

    def compute(self, job: Job, found: Founds) -> Found | None:
        """Charts by day; None if topics have no day."""
        days = by_day(job.outcomes, [info.name for info in job.answer_measures])
        return Found(days=days) if days else None


def by_day(outcomes: pd.DataFrame, measures: Sequence[str] = ()) -> dict[str, dict[int, float]]:
    """Shares of classes, the mean IR score and means of answer measures of each day of the topics.

    Returns {metric: {YYYYMMDD: value}}; {} where topics have no day. The shares are over what the judge was
    asked about on that day, missing verdicts among it; a day on which nothing was asked has none.
    """
    days = outcomes[_DAY] if _DAY in outcomes else pd.Series(dtype="str")
    if days.isna().all() or not days.dropna().map(_is_date).all():
        return {}
    rows = outcomes[days.notna()]
    rows = rows.assign(**{_DAY: rows[_DAY].str.replace("-", "").astype(int)})
    found = {"topics_at_day": rows.groupby(_DAY).size()}
    if rows["label"].notna().any():
        judged = with_classes(asked(rows))
        weight = pd.Series(weights_of(judged), index=judged.index)
        columns = share_columns(labels_of(judged))
        for name in _SHARES:
            sums = (weight * columns[name]).groupby(judged[_DAY]).sum()
            found[f"{name}_at_day"] = sums / weight.groupby(judged[_DAY]).sum()
    for name in ("ir_score", *measures):
        found[f"{name}_at_day"] = rows.groupby(_DAY)[name].mean().dropna()
    return {
        name: {int(day): float(value) for day, value in values.items()}  # type: ignore[call-overload]
        for name, values in found.items()
        if len(values)
    }


def _is_date(text: object) -> bool:
    return isinstance(text, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) is not None
