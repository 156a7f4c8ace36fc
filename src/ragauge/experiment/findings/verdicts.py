"""What the verdicts of a job say: shares of classes, thresholds and zones, and a predictor."""

from __future__ import annotations

import shutil

from ragauge.contract.finding import Found, Founds, JobFinding
from ragauge.contract.jobs import Job
from ragauge.experiment.findings.estimates import findings
from ragauge.experiment.findings.failures import FOUND
from ragauge.experiment.measured_by import score_settings
from ragauge.experiment.outcomes import metrics


class Estimates(JobFinding):
    """Shares of classes, thresholds and zones, the predictor, answer measures, and labels by people."""

    name = "estimates"

    def compute(self, job: Job, found: Founds) -> Found:
        """`Findings`, which lie in the store: metrics, the figure, the predictor and sampled shares."""
        pipeline, record = job.pipeline, job.record
        floors = metrics.floor(pipeline.components.measure, job.frame("floor_means"))
        value = findings(
            pipeline.store,
            job.outcomes.drop(columns=list(FOUND), errors="ignore"),  # no estimate depends on them
            record["name"],
            job.n_boot,
            job.seed,
            {**record["estimate"], "zones": record.get("zones")},
            score_settings(pipeline),
            job.answer_measures,
            floors.get(job.n_tokens),
        )
        figure, shares = value.figure, value.sampled_shares
        return Found(
            value,
            metrics=value.metrics,
            logged={} if shares is None else {"sampled_shares": shares},
            files={} if figure is None else {f"figures/{figure.name}": lambda path: shutil.copy(figure, path)},
            model=value.predictor,
        )
