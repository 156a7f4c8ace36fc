"""Classes predicted by a given predictor without any LLM: of a job's answers, and by system."""

from __future__ import annotations

from ragauge.contract.finding import (
    Cell,
    Col,
    Finding,
    Found,
    Founds,
    Grid,
    Heads,
    JobFinding,
    Num,
    Section,
    Shown,
    Text,
)
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.metrics import Metric
from ragauge.estimate.prediction import predict
from ragauge.findings.tables import SHORT, number
from ragauge.show.formats import share


class Predicted(JobFinding):
    """The class shares by the configured predictor, and the topics by risk."""

    name = "predicted"
    after = "all"
    metrics = (
        Metric(
            "predicted_correct_share{,_lo,_hi}", label="predicted right", better="higher", unit="share",
            group="predictor", headline=True, listed="compare",
        ),
        Metric(
            "predicted_hallucination_share{,_lo,_hi}", label="predicted hallucination", better="lower", unit="share",
            group="predictor", listed="compare",
        ),
        Metric("predicted_share_{1,2,3,4,5}{,_lo,_hi}", group="predictor"),
        Metric("predicted_outside_share", group="predictor"),
        Metric("unjudged_{right,lack}_mae_{predictor,thresholds,unchanged}", group="predictor"),
    )  # fmt: skip

    def compute(self, job: Job, found: Founds) -> Found | None:
        """The prediction; None without a predictor."""
        if job.model is None:
            return None
        # Not the outcomes: no judge is asked for a prediction.
        prediction = predict(job.model, job.pipeline.foreseeing)
        return Found(prediction, metrics=prediction.metrics, logged={"topics_at_risk": prediction.topics})


class PredictedShares(Finding):
    """The shares by `predictor=models:/...` of every job, which the jobs have logged."""

    name = "predicted"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """The jobs with a prediction; None without any."""
        known = [
            (system, record)
            for system, record in zip(jobs.systems, jobs.records, strict=True)
            if "predicted_correct_share" in record.metrics
        ]
        return Found(known) if known else None

    def show(self, jobs: Jobs, value: list, found: Founds) -> Shown:
        """A row per job."""
        outside = max(record.metrics.get("predicted_outside_share", 0) for _, record in value)
        beyond = (
            f" In a job up to {share(outside)} of the topics have scores outside of those that it was fitted on."
            if outside
            else ""
        )
        classes_of = (Col(str(c), SHORT[c]) for c in (1, 2, 3, 4))
        columns: Heads = ["System", "N", "Right", "Hallucination / classes 2 and 4", *classes_of]
        rows: list[list[Cell]] = []
        for system, record in value:
            m = record.metrics
            shares = [number(m, f"predicted_{name}", "share") for name in ("correct_share", "hallucination_share")]
            classes = [Num(m[f"predicted_share_{c}"], "share") for c in (1, 2, 3, 4)]
            rows.append([system, str(record.n_tokens), *shares, *classes])
        about = Text(
            "The classes that the given predictor expects from what was retrieved, with intervals over topics."
            f"{beyond} Each job's topics at risk are in its `topics_at_risk.json`."
        )
        return Shown([Section("Predicted, without any LLM", [about, Grid("Predicted shares", columns, rows)])])
