"""`tracking.evaluation` and `trace=true`: the job's topics on MLflow's pages of evaluation runs and traces."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragauge.contract import provenance
from ragauge.contract.datasets import Monitored
from ragauge.contract.errors import ConfigError
from ragauge.contract.finding import Found, Founds, JobFinding
from ragauge.contract.jobs import Job
from ragauge.contract.metrics import in_group
from ragauge.contract.progress import progress
from ragauge.contract.settings import Settings
from ragauge.findings.per_question import own_place, place_of, traced
from ragauge.plugins.mlflow_pages.topics import FRAMES, Answered, TopicTrace, evaluation_metrics, topics_of
from ragauge.plugins.mlflow_pages.writing import assessments, link, write_traces
from ragauge.track import absolute_uri, tracking_uri
from ragauge.track.connection import at, quiet, reachable, with_tags

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import AssessmentSource

    from ragauge.contract.measures import AnswerMeasureInfo

log = logging.getLogger(__name__)

EVALUATION_RUN = {"mlflow.runType": "genai_evaluate"}  # MLflow's tag of the runs on its page of evaluations
RUN_TAG = "evaluation_run"  # on a job's run, and in its record: the id of its evaluation run
PAGE = "page"  # in the record of a sweep's job: what an evaluation run would show, should the sweep's end want one
AUTO, AUTO_TOPICS = "auto", 100  # a value of tracking.evaluation, and how many topics of a job it writes
_CHOICES = ("n_tokens", "topics")
_DIGEST = "ragauge.shown"  # on an evaluation run: a digest of what it shows
_ENDED = " and attributes.status = 'FINISHED'"


class Pages(JobFinding):
    """A trace per topic, and with `tracking.evaluation` a run on MLflow's page of evaluation runs."""

    name = "mlflow_pages"

    def check(self, settings: Settings, measures: Sequence[AnswerMeasureInfo]) -> None:
        """ConfigError for an invalid `tracking.evaluation`."""
        value = settings.tracking.evaluation
        if isinstance(value, Mapping):
            for key, given in value.items():
                if key not in _CHOICES or type(given) is not int or given < 1:
                    allowed = " and ".join(_CHOICES)
                    raise ConfigError(f"tracking.evaluation.{key}={given}: allowed are {allowed}, positive integers")
        elif value not in (True, False, AUTO):
            raise ConfigError(f"tracking.evaluation={value}: allowed are auto, true, false and {{topics: 50}}")

    def compute(self, job: Job, found: Founds) -> Found | None:
        """Writes into MLflow, and the evaluation run's id into the record.

        Of a sweep `auto` writes at its end alone, so the record gets what it takes. Where `auto` cannot write, the job
        goes on with a warning.
        """
        settings, record = job.settings, job.record
        asked = settings.tracking.evaluation
        if asked is not True and traced(job.pipeline) is not None:  # traces of others get feedback on request alone
            asked = False
        whole = bool(asked is True or settings.trace)  # the traces are written anyway
        if not whole:
            if not asked or not job.outcomes["answer"].notna().any():
                return None
            if record.sweep_id is not None:
                return Found(record={PAGE: _page(job)})
        uri = absolute_uri(tracking_uri(settings.tracking.uri))
        try:
            with quiet(), at(uri) as client, reachable(uri):
                given = client, record.experiment_id, record.run_id
                if not asked:
                    write_traces(*given, topics_of(Answered.of(job)), source_of(*_judge(job)))
                    return None
                topics = topics_of(Answered.of(job), _measured_traces(job), None if whole else most_of(asked))
                values = evaluation_metrics(found["estimates"].metrics, job.outcomes, job.answer_measures)
                run_id = write_evaluation(*given, list(topics), source_of(*_judge(job)), values, again=whole)
        except Exception as error:
            if whole:
                raise
            log.warning("MLflow has no evaluation run of this job (tracking.evaluation=false asks for none): %s", error)
            return None
        return Found(run_id, record={RUN_TAG: run_id})


def most_of(asked: Any) -> int:
    """The number of topics that `tracking.evaluation` writes, if it is not true."""
    return int(asked.get("topics", AUTO_TOPICS)) if isinstance(asked, Mapping) else AUTO_TOPICS


def _page(job: Job) -> dict[str, Any]:
    """The data for writing the job's evaluation run at the end of the sweep."""
    asked, of = job.settings.tracking.evaluation, Answered.of(job)
    return {
        "n_tokens": asked.get("n_tokens") if isinstance(asked, Mapping) else None,
        "topics": most_of(asked),
        "model": of.model,
        "price": of.price,
        "judge": _judge(job),
        "frames": job.pipeline.entries_of(FRAMES),
    }


def _judge(job: Job) -> tuple[str, bool]:
    """The option of the job's judge, and whether it asks an LLM."""
    return job.record.choices.get("judge", "ragauge"), job.pipeline.components.judge.kind == "chat"


def source_of(judge: str, asks: bool) -> AssessmentSource:
    """MLflow's source of a job's feedback: the judge's option, as an LLM or as code."""
    from mlflow.entities import AssessmentSource

    return AssessmentSource(source_type="LLM_JUDGE" if asks else "CODE", source_id=judge)


def write_evaluation(
    client: MlflowClient, experiment_id: str, job_run: str, topics: Sequence[TopicTrace], source: AssessmentSource,
    values: Mapping[str, float], again: bool = True,
) -> str:  # fmt: skip
    """Writes a run for MLflow's page *Evaluation runs*, with a trace and feedback per topic; returns its id.

    It is a run of its own, since MLflow shows a run that has a model, such as a predictor, among training runs alone.
    It has the dataset of the job's run. A topic's own trace is linked, and gets the feedback, where it is one of the
    experiment; else one is written. values: its metrics. again: whether it is written although one of the experiment
    shows the same.
    """
    from mlflow.entities import Metric

    of_job = client.get_run(job_run)
    shown = {**EVALUATION_RUN, _DIGEST: _digest(of_job.info.run_name, topics, source, values)}
    if not again and (same := client.search_runs([experiment_id], with_tags(shown) + _ENDED, max_results=1)):
        client.set_tag(job_run, RUN_TAG, same[0].info.run_id)
        return str(same[0].info.run_id)
    known = {
        name: value for name, value in of_job.data.tags.items() if name.startswith(("mlflow.user", "mlflow.source."))
    }
    tags = {**known, **shown, "evaluation_of": job_run, **provenance.process_tags()}
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


def _digest(*shown: Any) -> str:
    return hashlib.sha256(json.dumps(shown, sort_keys=True, default=vars).encode()).hexdigest()


def _add_feedback(client: MlflowClient, topics: Sequence[TopicTrace], source: AssessmentSource, run_id: str) -> None:
    """Logs feedback on existing traces, one assessment at a time, as MLflow requires."""
    import mlflow

    with progress(len(topics), "logging feedback", "trace") as bar:
        for topic in topics:
            for one in assessments(topic, str(topic.trace_id), source, run_id):
                mlflow.log_assessment(str(topic.trace_id), one)
            bar.update()


def _measured_traces(job: Job) -> dict[str, str]:
    """The measured traces by qid, if they lie in the job's experiment."""
    source: Monitored | None = traced(job.pipeline)
    if source is None or place_of(source) != own_place(job):
        return {}
    found: dict[str, str] = source.trace_ids(job.frame("topics"))
    return found
