"""How much of the needed evidence stands in the context, at this budget and at the others."""

from __future__ import annotations

from ragauge.contract.finding import Found, Founds, JobFinding, Shown
from ragauge.contract.jobs import Job
from ragauge.experiment.outcomes import metrics
from ragauge.measures.floor import short_of_text
from ragauge.track import views


class ScoreFound(JobFinding):
    """The IR score, what unrelated text scores, and both over the budgets up to the job's."""

    name = "ir_score"
    after = "scores"

    def compute(self, job: Job, found: Founds) -> Found:
        """A sentence where unrelated text was short; the charts are kept for the sweep."""
        n, means = job.n_tokens, job.frame("floor_means")
        both = (metrics.curve(job.frame("scores")), metrics.floor(job.pipeline.components.measure, means))
        steps = {
            name: {at: value for at, value in curve.items() if at <= n}
            for name, curve in zip(metrics.CURVES, both, strict=True)
        }
        return Found(
            short_of_text(means, n, job.frame("scored_evidence")["qid"].nunique()),
            metrics={
                name: curve[n] for name, curve in zip(("ir_score", "ir_score_floor"), both, strict=True) if n in curve
            },
            steps={**steps, views.TOKENS: {at: at for at in steps[metrics.CURVES[0]]}},
            record=steps,
        )

    def show(self, job: Job, value: str | None, found: Founds) -> Shown:
        """The sentence."""
        return Shown(lines=[] if value is None else [value])
