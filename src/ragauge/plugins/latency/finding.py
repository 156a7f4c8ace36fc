"""The end-to-end time of a question sent alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ragauge.contract.checks import require
from ragauge.contract.errors import RagaugeError
from ragauge.contract.finding import Found, Founds, JobFinding, Shown
from ragauge.contract.jobs import Job
from ragauge.contract.metrics import Metric

if TYPE_CHECKING:
    import pandas as pd

    from ragauge.contract.measures import AnswerMeasureInfo


class Latency(JobFinding):
    """Seconds of each stage and end to end, if `measure_latency` asks for them."""

    name = "latency"
    after = "all"  # the judge comes first where money is short
    metrics = (
        Metric("latency_*_{p50,p95}", group="stage"),
        Metric("latency_topics", group="stage"),
        Metric("latency_failed", group="missing"),
    )

    def check(self, cfg: Any, measures: Sequence[AnswerMeasureInfo]) -> None:
        """ConfigError for a number of topics out of range."""
        topics = 1 <= cfg.latency_topics <= 10_000
        require("latency_topics", cfg.latency_topics, topics, "1 to 10,000 topics")

    def compute(self, job: Job, found: Founds) -> Found | None:
        """Metrics; the reason if it cannot be measured, since everything else is done by now."""
        if not job.cfg.measure_latency:
            return None
        from ragauge.plugins.latency.measured import latency  # it imports for a second

        try:
            return Found(metrics=latency(job.pipeline, int(job.cfg.latency_topics), job.seed))
        except RagaugeError as error:
            return Found(f"latency was not measured: {error}")

    def needs(self, job: Job, answers: pd.DataFrame | None) -> list[pd.DataFrame]:
        """The requests for sending so many topics again."""
        if not job.cfg.measure_latency:
            return []
        from ragauge.plugins.latency.measured import needs_of_latency

        return needs_of_latency(job.pipeline, int(job.cfg.latency_topics), job.seed, answers)

    def show(self, job: Job, value: str | None, found: Founds) -> Shown:
        """Shows the reason as a warning."""
        return Shown(notes=[] if value is None else [value])
