"""`tracking.evaluation` and `trace=true`: the job's topics on MLflow's pages of evaluation runs and traces."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge.contract import provenance
from ragauge.contract.errors import ConfigError, TrackingError
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

    from ragauge.contract.measures import AnswerMeasureInfo

log = logging.getLogger(__name__)

EVALUATION_RUN = {"mlflow.runType": "genai_evaluate"}  # MLflow's tag of the runs on its page of evaluations
RUN_TAG = "evaluation_run"  # on a job's run: the id of its evaluation run
AUTO, AUTO_TOPICS = "auto", 100  # a value of tracking.evaluation, and how many topics of a job it writes
_SWEEP_FILE = "multirun.yaml"  # Hydra writes it into a sweep's folder


class Pages(JobFinding):
    """A trace per topic, and with `tracking.evaluation` a run on MLflow's page of evaluation runs."""

    name = "mlflow_pages"

    def check(self, cfg: Any, measures: Sequence[AnswerMeasureInfo]) -> None:
        """ConfigError for a value of `tracking.evaluation` that is not allowed."""
        if (value := cfg.tracking.evaluation) not in (True, False, AUTO):
            raise ConfigError(f"tracking.evaluation={value}: allowed are auto, true and false")

    def compute(self, job: Job, found: Founds) -> Found | None:
        """Writes into MLflow; the value is the id of the evaluation run, which is in the job's record, too.

        Where `auto` cannot write, the job goes on with a warning.
        """
        from mlflow.exceptions import MlflowException

        cfg, record = job.cfg, job.record
        auto = cfg.tracking.evaluation == AUTO
        evaluated = _chosen(job) if auto else cfg.tracking.evaluation
        if not (cfg.trace or evaluated):
            return None
        uri = absolute_uri(tracking_uri(cfg.tracking.uri))
        try:
            with quiet(), at(uri) as client, reachable(uri):
                given = client, record["experiment_id"], record["run_id"]
                if not evaluated:
                    write_traces(*given, topics_of(job), source_of(job))
                    return None
                topics = topics_of(job, _measured_traces(job), AUTO_TOPICS if auto and not cfg.trace else None)
                values = evaluation_metrics(found["estimates"].metrics, job)
                run_id = write_evaluation(*given, list(topics), source_of(job), values)
        except (TrackingError, MlflowException) as error:
            if not auto or cfg.trace:
                raise
            log.warning("MLflow has no evaluation run of this job (tracking.evaluation=false asks for none): %s", error)
            return None
        return Found(run_id, record={RUN_TAG: run_id})


def _chosen(job: Job) -> bool:
    """Whether `auto` writes an evaluation run: of answers that ragauge asked for, at the largest budget of a sweep."""
    if job.record["sweep_id"] is None or not at_largest_budget(Path(job.record["written_in"]), job.n_tokens):
        return False
    return traced(job.pipeline) is None and bool(job.outcomes["answer"].notna().any())


def at_largest_budget(folder: Path, n_tokens: int) -> bool:
    """Whether the sweep that a job's folder lies in has no larger budget; False for jobs that are run again.

    A sweep that does not vary n_tokens has one budget. False, too, where Hydra's file on the sweep is not there.
    """
    import yaml
    from hydra.core.override_parser.overrides_parser import OverridesParser

    file = next((above / _SWEEP_FILE for above in folder.parents if (above / _SWEEP_FILE).is_file()), None)
    if file is None:
        return False
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    given = yaml.load(file.read_text(encoding="utf-8"), loader)["hydra"]["overrides"]["task"]
    varied = {one.key_or_group: one for one in OverridesParser.create().parse_overrides(given)}
    budgets = varied.get("n_tokens")
    if budgets is None or not budgets.is_sweep_override():
        return "rerun" not in varied
    return n_tokens >= max(map(int, budgets.sweep_string_iterator()))


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
