"""Evidence that contexts hold in another spelling, which the score does not count."""

from __future__ import annotations

from ragauge.contract.finding import Found, Founds, JobFinding, Shown
from ragauge.contract.jobs import Job
from ragauge.contract.metrics import Metric
from ragauge.measures.floor import raw
from ragauge.measures.matching import BatchedMeasure
from ragauge.measures.spellings import TOPICS, respelled


class Respelled(JobFinding):
    """The number of evidence parts that contexts hold in other characters, and the `measure.fold` that finds them."""

    name = "spellings"
    after = "scores"
    metrics = (Metric("evidence_respelled", group="size"),)

    def compute(self, job: Job, found: Founds) -> Found | None:
        """The sentence; None without such parts, or if the measure compares no characters."""
        measure = raw(job.pipeline.components.measure)
        if not isinstance(measure, BatchedMeasure):
            return None
        contexts, evidence, scores = (job.frame(name) for name in ("contexts", "scored_evidence", "part_scores"))
        here = scores[scores["n_tokens"] == job.n_tokens][["qid", "part", "value"]]
        open_ = evidence.merge(here[here["value"] < 1], on=["qid", "part"])
        n, fold = respelled(open_, dict(zip(contexts["qid"], contexts["text"], strict=True)), measure.fold)
        if not n:
            return None
        some = f" of the first {TOPICS:,} topics" if open_["qid"].nunique() > TOPICS else ""
        stand = "piece of evidence stands" if n == 1 else "pieces of evidence stand"
        counts = f"measure.fold=[{','.join(fold)}] counts {'it' if n == 1 else 'them'}"
        return Found(
            f"{n:,} {stand} in the contexts in another spelling{some}: {counts}", metrics={"evidence_respelled": n}
        )

    def show(self, job: Job, value: str, found: Founds) -> Shown:
        """The sentence."""
        return Shown(lines=[value])
