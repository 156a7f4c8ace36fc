"""Texts about a run: MLflow's description and dataset, and a job's last printed lines."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge import track
from ragauge.contract import answer_measures as shown
from ragauge.contract import metrics
from ragauge.contract.groups import ANSWERS, AROUND_RETRIEVER, GROUPS
from ragauge.contract.identity import identity
from ragauge.contract.record import JobRecord
from ragauge.contract.redact import redact
from ragauge.estimate.outcomes import POPULATION
from ragauge.experiment.folder import JobFolder
from ragauge.experiment.slicing import WEIGHTS_TAG
from ragauge.findings.order import metrics_of_packages
from ragauge.findings.people import judged_lines
from ragauge.findings.terminal import job_line
from ragauge.track import views

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.experiment.measured import MeasuredJob
    from ragauge.experiment.stages.pipeline import Pipeline

log = logging.getLogger(__name__)


def job_note(choices: Mapping[str, str], dataset: str, n_tokens: int, model: str, note: str | None) -> str:
    """The description of a job's run, after `tracking.note`: its content, and how to read it.

    choices: the chosen option of every config group. model: the LLM that answers.
    """
    chosen = {group: name for group, name in choices.items() if name not in ("none", "rank")}
    around = [f"{group} {chosen[group]}" for group in AROUND_RETRIEVER if group in chosen]
    system = f"retriever {choices.get('retriever', '?')}"
    system += f" with {', '.join(around)}" if around else ""
    chunks = f" over chunks by {chosen['chunker']}" if "chunker" in chosen else ""
    answers = f", answers of {model}" if "llm" in chosen else ", no answers"
    judged = f" judged by {chosen['judge']}" if "judge" in chosen else ""
    words = [
        *([note.rstrip()] if note else []),
        f"Measured: {system}{chunks}, on the questions of {dataset}, with a context of {n_tokens:,} tokens"
        f"{answers}{judged}.",
        "Read `ir_score` first (share of the needed evidence in the context), then `correct_share` and "
        "`hallucination_share` (shares of the questions, beside `judge_share_missing` without a verdict). "
        "`interval/…` has 95 % intervals, "
        "`per_question.json` under Artifacts has every question, `chart/ir_score_at_n` the score at other budgets.",
    ]
    return "\n\n".join(words)


def dataset_of(pipeline: Pipeline) -> dict[str, Any]:
    """Name, digest, source and size of a job's dataset, as arguments of `Run.dataset`."""
    source = pipeline.components.dataset
    said = {**identity(source), **{f"file {role}": str(path) for role, path in source.files().items()}}
    entry = pipeline.entry("dataset")
    return {
        "name": str(source.name),
        "digest": entry.digest,
        "source": {key: value for key, value in said.items() if isinstance(value, str | int | float)},
        "profile": {name: entry.n_rows(frame) for name, frame in _SIZES.items()},
    }


def describe(job: MeasuredJob, run: track.Run) -> None:
    """Logs and records a job's dataset and components, and reports changes since the run that it repeats."""
    pipeline, folder, record = job.pipeline, job.folder, job.record
    known = {"dataset_digest": pipeline.entry("dataset").digest, **descriptions(pipeline)}
    record.dataset = dataset_of(pipeline)
    run.dataset(**record.dataset)
    run.tag({**known, **shown.as_tag(job.answer_measures), **metrics.as_tag(metrics_of_packages(job.findings))})
    record.answer_measures = shown.as_record(job.answer_measures)
    if (condition := pipeline.components.retriever.condition) is not None:
        record.condition = condition
    if pipeline.slice_weights:
        record.slice_weights = dict(pipeline.slice_weights)
        run.tag({WEIGHTS_TAG: json.dumps(pipeline.slice_weights, ensure_ascii=False)})
    if folder.origin:
        same = ["the dataset is the same"] if folder.number == 0 else []
        for line in folder.origin.changed(known) or same:
            log.info("  %s", line)


def descriptions(pipeline: Pipeline) -> dict[str, str]:
    """Tags that describe the components' work (for example queries made without an LLM)."""
    told: dict[str, str] = {}
    for group in GROUPS:
        component = getattr(pipeline.components, group)
        told |= {f"{group}.{k}": str(v) for k, v in component.describe(pipeline.tools).items()}
    for name, measure in pipeline.components.answers.items():
        told |= {f"{ANSWERS}.{name}.{k}": str(v) for k, v in measure.describe(pipeline.tools).items()}
    return told


_SIZES = {"questions": "topics", "documents": "docs", "pieces_of_evidence": "evidence"}


def where_text(uri: str, page: str) -> str:
    """How to open a page of MLflow's UI: the server's address, or the command to start one."""
    if uri.startswith(("http://", "https://")):
        return f"MLflow UI: {uri.rstrip('/')}/{page}"
    here = track.absolute_uri(uri) == track.absolute_uri(track.tracking_uri())
    start = "make ui, or ragauge ui" if here else f"ragauge ui --tracking-uri {shlex.quote(uri)}"
    return f"MLflow UI: {start}; then http://127.0.0.1:5000/{page}"


def run_text(run_id: str, folder: Path, uri: str, experiment_id: str) -> str:
    """The last lines of a single job: its MLflow run, folder, and how to open them.

    uri: without secrets.
    """
    return f"MLflow run {run_id}; folder {folder}\n{where_text(uri, views.run_page(experiment_id, run_id))}"


def last_lines(cfg: DictConfig, folder: JobFolder, record: JobRecord) -> list[str]:
    """The last lines that a job prints: its numbers in one line, and where to find them."""
    lines = in_numbers(record)
    if folder.sweep is not None:
        return [*lines, f"  MLflow run {record.run_id}; folder {folder.path}"]
    return [*lines, last_place(cfg, folder, record)]


def in_numbers(record: JobRecord) -> list[str]:
    """The numbers of a finished job: a line, and further ones with a judged sample or human labels."""
    target = record.sample_target or POPULATION
    return [job_line(record.name, record.metrics), *judged_lines(record.metrics, target)]


def last_place(cfg: DictConfig, folder: JobFolder, record: JobRecord) -> str:
    """`run_text` of a single job."""
    uri = redact(track.tracking_uri(cfg.tracking.uri))
    return run_text(record.run_id, folder.path.resolve(), uri, record.experiment_id)
