"""The effect of clusters of topics, chosen or of shared documents, on intervals."""

from __future__ import annotations

from ragauge.contract.finding import Finding, Found, Founds, JobFinding, Shown
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.metrics import Metric
from ragauge.contract.outcomes import CLUSTER
from ragauge.estimate.clusters import clustered_line, clustered_text, clusterings


class ClustersFound(JobFinding):
    """Metrics of a job: clusters, cluster_icc (intraclass correlation), cluster_width_ratio."""

    name = "clusters"
    after = "all"
    metrics = (Metric("{clusters,cluster_icc,cluster_width_ratio}", group="size"),)

    def compute(self, job: Job, found: Founds) -> Found | None:
        """For right answers, or for IR scores without verdicts; None without clusters."""
        rows = job.outcomes if "estimates" in found else job.pipeline.retrieved
        measured = clusterings(rows)
        if not measured:
            return None
        one = measured[0]
        values = {"clusters": one.n_clusters, "cluster_icc": one.icc, "cluster_width_ratio": one.width_ratio}
        text = clustered_text(measured, CLUSTER in rows)
        return Found(text, metrics={name: value for name, value in values.items() if value == value})

    def show(self, job: Job, value: str, found: Founds) -> Shown:
        """A sentence, once per sweep."""
        return Shown(lines=[] if job.record.sweep_id else [value])


class Clusters(Finding):
    """The effect of clusters on the intervals of a sweep."""

    name = "clusters"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """A line and a sentence; None without clusters."""
        measured = [one for _, rows in jobs.at_n.groupby("system") for one in clusterings(rows)]
        chosen = CLUSTER in jobs.at_n
        return Found((clustered_line(measured, chosen), clustered_text(measured, chosen))) if measured else None

    def show(self, jobs: Jobs, value: tuple[str, str], found: Founds) -> Shown:
        """The line on the terminal, the sentence at the head of the report."""
        line, sentence = value
        return Shown(lines=[line] if line else [], notes=[f"{sentence[0].upper()}{sentence[1:]}."])
