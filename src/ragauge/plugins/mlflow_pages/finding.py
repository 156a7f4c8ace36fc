"""`tracking.evaluation=true` and `trace=true`: the job's topics on MLflow's pages of evaluation runs and traces."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ragauge.contract import provenance
from ragauge.contract.finding import Found, Founds, JobFinding
from ragauge.contract.jobs import Job
from ragauge.contract.metric_names import in_group
from ragauge.contract.progress import progress
from ragauge.contract.protocols import Monitored
from ragauge.findings.per_question import own_place, place_of, traced
from ragauge.plugins.mlflow_pages.topics import TopicTrace, evaluation_metrics, topics_of
from ragauge.plugins.mlflow_pages.writing import assessments, link, write_traces
from ragauge.track import absolute_uri, tracking_uri
from ragauge.track._connection import at, quiet, reachable

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import AssessmentSource

EVALUATION_RUN = {"mlflow.runType": "genai_evaluate"}  # MLflow's tag of the runs on its page of evaluations
RUN_TAG = "evaluation_run"  # on a job's run: the id of its evaluation run


class Pages(JobFinding):
    """A trace per topic, and with `tracking.evaluation` a run on MLflow's page of evaluation runs."""

    name = "mlflow_pages"

    def compute(self, job: Job, found: Founds) -> Found | None:
        """Writes into MLflow; the value is the id of the evaluation run, which is in the job's record, too."""
        cfg, record = job.cfg, job.record
        if not (cfg.trace or cfg.tracking.evaluation):
            return None
        uri = absolute_uri(tracking_uri(cfg.tracking.uri))
        with quiet(), at(uri) as client, reachable(uri):
            given = client, record["experiment_id"], record["run_id"]
            if not cfg.tracking.evaluation:
                write_traces(*given, topics_of(job), source_of(job))
                return None
            topics = topics_of(job, _measured_traces(job))
            values = evaluation_metrics(found["estimates"].metrics, job)
            run_id = write_evaluation(*given, list(topics), source_of(job), values)
            return Found(run_id, record={RUN_TAG: run_id})


def source_of(job: Job) -> AssessmentSource:
    """MLflow's source of a job's feedback: the judge's option, as an LLM or as code."""
    from mlflow.entities import AssessmentSource

    kind = "LLM_JUDGE" if job.pipeline.components.judge.kind == "chat" else "CODE"
    return AssessmentSource(source_type=kind, source_id=job.record["choices"].get("judge", "ragauge"))


def write_evaluation(
    client: MlflowClient, experiment_id: str, job_run: str, topics: Sequence[TopicTrace], source: AssessmentSource,
    values: Mapping[str, float],
) -> str:  # fmt: skip
    """Writes a run for MLflow's page *Evaluation runs*, a trace per topic with feedback; returns its id.

    It is a run of its own, since MLflow shows a run that has a model, such as a predictor, among training runs alone.
    It has the dataset of the job's run. A topic's own trace is linked, and gets the feedback, where it is one of the
    experiment; else one is written. values: its metrics.
    """
    from mlflow.entities import Metric

    of_job = client.get_run(job_run)
    tags = {**EVALUATION_RUN, "evaluation_of": job_run, **provenance.process_tags()}
    run_id: str = client.create_run(experiment_id, run_name=of_job.info.run_name, tags=tags).info.run_id
    status = "FAILED"
    try:
        if of_job.inputs is not None and of_job.inputs.dataset_inputs:
            client.log_inputs(run_id, of_job.inputs.dataset_inputs)
        own = (topic for topic in topics if topic.trace_id is None)
        written = write_traces(client, experiment_id, job_run, own, source, run_id)
        measured = [topic for topic in topics if topic.trace_id is not None]
        _add_feedback(client, measured, source, run_id)
        link(client, run_id, [topic.trace_id or written[topic.qid] for topic in topics])
        now = int(time.time() * 1000)
        metrics = [Metric(in_group(k), float(v), now, 0) for k, v in values.items() if v == v]
        client.log_batch(run_id, metrics=metrics)
        status = "FINISHED"
    finally:
        client.set_terminated(run_id, status=status)
    client.set_tag(job_run, RUN_TAG, run_id)
    return run_id


def _add_feedback(client: MlflowClient, topics: Sequence[TopicTrace], source: AssessmentSource, run_id: str) -> None:
    """Logs feedback on traces that exist, one assessment at a time: MLflow knows no other way."""
    import mlflow

    with progress(len(topics), "logging feedback", "trace") as bar:
        for topic in topics:
            for one in assessments(topic, str(topic.trace_id), source, run_id):
                mlflow.log_assessment(str(topic.trace_id), one)
            bar.update()


def _measured_traces(job: Job) -> dict[str, str]:
    """The traces that were measured, by qid, where they lie in the experiment that the job is logged into."""
    source: Monitored | None = traced(job.pipeline)
    if source is None or place_of(source) != own_place(job.cfg, job.record["experiment"]):
        return {}
    found: dict[str, str] = source.trace_ids(job.frame("topics"))
    return found
