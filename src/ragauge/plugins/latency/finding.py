"""The end-to-end time of a question sent alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ragauge.contract.checks import require
from ragauge.contract.errors import RagaugeError
from ragauge.contract.finding import Found, Founds, JobFinding, Shown
from ragauge.contract.jobs import Job
from ragauge.contract.metrics import Metric
from ragauge.contract.settings import Settings
from ragauge.show.formats import milliseconds

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

    def check(self, settings: Settings, measures: Sequence[AnswerMeasureInfo]) -> None:
        """ConfigError for a number of topics out of range."""
        topics = 1 <= settings.latency_topics <= 10_000
        require("latency_topics", settings.latency_topics, topics, "1 to 10,000 topics")

    def compute(self, job: Job, found: Founds) -> Found | None:
        """Metrics; the reason if it cannot be measured, since everything else is done by now."""
        if not job.settings.measure_latency:
            return None
        from ragauge.experiment.stages.pipeline import Pipeline
        from ragauge.plugins.latency.measured import latency  # it imports for a second

        assert isinstance(job.pipeline, Pipeline)  # it runs stages itself
        try:
            seconds = latency(job.pipeline, job.settings.latency_topics, job.seed)
        except RagaugeError as error:
            return Found(f"latency was not measured: {error}")
        return Found(seconds, metrics=seconds)

    def needs(self, job: Job, answers: pd.DataFrame | None) -> list[pd.DataFrame]:
        """The requests for sending so many topics again."""
        if not job.settings.measure_latency:
            return []
        from ragauge.experiment.stages.pipeline import Pipeline
        from ragauge.plugins.latency.measured import needs_of_latency

        assert isinstance(job.pipeline, Pipeline)
        return needs_of_latency(job.pipeline, job.settings.latency_topics, job.seed, answers)

    def show(self, job: Job, value: str | Mapping[str, float], found: Founds) -> Shown:
        """The time of a question in a job outside of sweeps; the reason for none as a warning."""
        if isinstance(value, str):
            return Shown(notes=[value])
        if job.record.sweep_id is not None or "latency_total_p50" not in value:
            return Shown()
        median, p95 = (milliseconds(value[f"latency_total_{end}"]) for end in ("p50", "p95"))
        return Shown(
            lines=[f"latency of {value['latency_topics']:.0f} questions: median {median}, 95th percentile {p95}"]
        )
