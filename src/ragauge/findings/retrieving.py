"""What the parts that retrieve tell of their work: chunks, approximate search, rewritten queries, compression."""

from __future__ import annotations

import pandas as pd

from ragauge.contract.finding import Found, Founds, JobFinding
from ragauge.contract.frames import count_rows
from ragauge.contract.jobs import Job


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
            values |= rewriting(job.frame("query_checks"))
        if pipeline.components.compressor.kind != "none":
            values |= compression(job.frame("compression"))
        return Found(metrics=values)


def rewriting(checks: pd.DataFrame) -> dict[str, float]:
    """What `query_checks` says over topics; a mean is left out where no topic has a value."""
    means = checks[["similarity", "new_hits"]].mean().dropna()
    return {
        "rewriter_failed": int(checks["failed"].sum()),
        **{f"rewriter_{name}": float(value) for name, value in means.items()},
    }


def compression(sizes: pd.DataFrame) -> dict[str, float]:
    """`compressor_ratio`: characters of the passages after compression over those before, of all topics.

    sizes: one row [characters_in, characters_out]; 1 where there was no text.
    """
    row = sizes.iloc[0]
    return {"compressor_ratio": row["characters_out"] / row["characters_in"] if row["characters_in"] else 1.0}
