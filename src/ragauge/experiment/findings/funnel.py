"""Where a job lost its evidence: the share that each step of the retrieval still has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from ragauge.contract.finding import Found, Founds, JobFinding, Shown
from ragauge.contract.jobs import Job
from ragauge.diagnose.funnel import funnel, funnel_metrics
from ragauge.measures.floor import is_corrected

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline

_KEYS = ["qid", "part"]


class FunnelFound(JobFinding):
    """The metrics of the funnel."""

    name = "funnel"
    after = "scores"

    def compute(self, job: Job, found: Founds) -> Found:
        """The frame of `evidence_parts`, None where the job has no funnel."""
        parts = evidence_parts(job.pipeline)
        return Found(parts, metrics={} if parts is None else funnel_metrics(funnel(parts)))

    def show(self, job: Job, value: pd.DataFrame | None, found: Founds) -> Shown:
        """Why there is none."""
        if value is not None:
            return Shown()
        measure = job.pipeline.components.measure.name
        return Shown(
            lines=[f"measure={measure} uses a model, so there is no funnel: every step would have to be asked"]
        )


def evidence_parts(pipeline: Pipeline) -> pd.DataFrame | None:
    """A row per evidence part with a column for each step of the job's funnel; None where it has none.

    `unreranked` is what the order before reranking would have within the budget. The values are those of the
    measure without its correction, which hangs on the budget.
    """
    names = {stage.name for stage in pipeline.stages}
    if "funnel" not in names:
        return None
    trail = pipeline.frame("evidence_trail")
    corrected = is_corrected(pipeline.components.measure)
    within = pipeline.frame_for("corrected", "part_scores") if corrected else pipeline.frame("part_scores")
    found = _with_step(trail, within, "context", pipeline.n_tokens)
    if "funnel_unreranked" in names:
        found = _with_step(found, pipeline.frame("unreranked_scores"), "unreranked", pipeline.n_tokens)
    return found


def _with_step(trail: pd.DataFrame, scores: pd.DataFrame, step: str, n_tokens: int) -> pd.DataFrame:
    at_n = scores.loc[scores["n_tokens"] == n_tokens, [*_KEYS, "value"]].rename(columns={"value": step})
    return trail.merge(at_n, on=_KEYS, how="left", validate="one_to_one")
