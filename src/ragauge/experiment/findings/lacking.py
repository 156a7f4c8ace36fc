"""Topics that were skipped, and what the others lack: evidence, its place in the documents, a reference answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ragauge.contract.finding import Found, Founds, JobFinding, Shown
from ragauge.contract.jobs import Job
from ragauge.experiment.outcomes import metrics
from ragauge.findings.lacking import lacking_text, lost_text

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline

_NAMED = 10  # topics that lack something, in a record


class Skipped(JobFinding):
    """The rows of the dataset that were left out, since `dataset.on_error=skip` says so."""

    name = "skipped"
    after = "scores"

    def compute(self, job: Job, found: Founds) -> Found:
        """The reasons."""
        reasons = job.frame("skipped")["skipped"].tolist()
        return Found(reasons, metrics={"topics_skipped": len(reasons)})

    def show(self, job: Job, value: list[str], found: Founds) -> Shown:
        """A warning each."""
        return Shown(notes=[f"skipped: {reason}" for reason in value])


class Lacking(JobFinding):
    """How many topics there are, and how many of them lack what."""

    name = "lacking"
    after = "scores"

    def compute(self, job: Job, found: Founds) -> Found:
        """`lacking`, which names some of the topics; lost parts of the evidence are a table."""
        value, lost = lacking(job.pipeline), job.frame("lost_evidence")
        return Found(
            value,
            metrics=value["metrics"],
            logged={"lost_evidence": lost} if len(lost) else {},
            record={"lacking": value["lacking"]},
        )

    def show(self, job: Job, value: dict[str, Any], found: Founds) -> Shown:
        """A sentence for each thing that is lacking, and each lost part; of a sweep's jobs each once."""
        sweep = job.record["sweep_id"]
        lost = lost_text(job.frame("lost_evidence"))
        return Shown(lines=_new(lacking_text([value]), sweep), notes=_new(lost, sweep))


def lacking(pipeline: Pipeline) -> dict[str, Any]:
    """What a job's record holds of its topics: their number and how many lack what, the first ten of these.

    metrics: topics, topics_<what>; lacking: qids by what (see `metrics.lacking`).
    """
    topics, lost = pipeline.frame("topics"), pipeline.frame("lost_evidence")
    found = metrics.lacking(topics, pipeline.frame("scored_evidence"), lost, pipeline.unjudged)
    counts = {f"topics_{name}": len(qids) for name, qids in found.items()}
    return {
        "metrics": {"topics": len(topics), **counts},
        "lacking": {name: qids[:_NAMED] for name, qids in found.items()},
    }


def _new(lines: Sequence[str], sweep: str | None) -> list[str]:
    """The lines that no job of the sweep printed in this process; all of them for a single job."""
    printed = set() if sweep is None else _printed(sweep)
    new = [line for line in lines if line not in printed]
    printed.update(new)
    return new


@cache
def _printed(sweep: str) -> set[str]:
    return set()
