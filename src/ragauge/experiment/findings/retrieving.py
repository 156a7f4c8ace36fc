"""What the parts that retrieve tell of their work: chunks, approximate search, rewritten queries, compression."""

from __future__ import annotations

from ragauge.contract.finding import Found, Founds, JobFinding
from ragauge.contract.frames import count_rows
from ragauge.contract.jobs import Job
from ragauge.experiment.outcomes import metrics


class Retrieving(JobFinding):
    """What became of documents and questions on their way into the context."""

    name = "retrieving"
    after = "scores"

    def compute(self, job: Job, found: Founds) -> Found:
        """Metrics alone."""
        pipeline = job.pipeline
        values: dict[str, float] = {"n_chunks": count_rows(job.rows("chunks"))}
        # Whoever made them: a stage that came from the store took no time here.
        made = [name for name in ("chunks", "index") if name in pipeline.making]
        values |= {f"seconds_made_{name}": pipeline.making[name].seconds for name in made}
        if any("ann" in stage.makes for stage in pipeline.stages):
            ann = job.frame("ann")
            values |= dict(zip(ann["metric"], ann["value"], strict=True))
        if pipeline.rewritten:
            values |= metrics.rewriting(job.frame("query_checks"))
        if pipeline.components.compressor.kind != "none":
            values |= metrics.compression(job.frame("compression"))
        return Found(metrics=values)
