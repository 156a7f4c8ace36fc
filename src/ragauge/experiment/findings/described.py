"""What is said of a run beside its numbers: MLflow's description and dataset, and the last lines of a job."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge import track
from ragauge.contract.context_parts import ReadsFiles
from ragauge.contract.groups import AROUND_RETRIEVER
from ragauge.contract.identity import identity
from ragauge.track import views

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline


def job_note(choices: Mapping[str, str], dataset: str, n_tokens: int, model: str, note: str | None) -> str:
    """The description of a job's run: what it measured, and how to read it; after `tracking.note`.

    choices: the chosen option of every config group. model: what answers.
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
        "`hallucination_share` (shares of the questions, with 95 % intervals `_lo`, `_hi`); "
        "`per_question.json` under Artifacts has every question, `ir_score_at_n` the score at other budgets.",
    ]
    return "\n\n".join(words)


def dataset_of(pipeline: Pipeline) -> dict[str, Any]:
    """Name, digest, source and size of what a job evaluates, as `Run.dataset` takes them."""
    source = pipeline.components.dataset
    files = source.files() if isinstance(source, ReadsFiles) else {}
    said = {**identity(source), **{f"file {role}": str(path) for role, path in files.items()}}
    entry = pipeline.entry("dataset")
    return {
        "name": str(source.name),
        "digest": entry.digest,
        "source": {key: value for key, value in said.items() if isinstance(value, str | int | float)},
        "profile": {name: entry.n_rows(frame) for name, frame in _SIZES.items()},
    }


_SIZES = {"questions": "topics", "documents": "docs", "pieces_of_evidence": "evidence"}


def where_text(uri: str, page: str) -> str:
    """How to open a page of MLflow's UI: the address of the server, or what starts one here."""
    if uri.startswith(("http://", "https://")):
        return f"MLflow UI: {uri.rstrip('/')}/{page}"
    here = track.absolute_uri(uri) == track.absolute_uri(track.tracking_uri())
    start = "make ui, or ragauge ui" if here else f"ragauge ui --tracking-uri {shlex.quote(uri)}"
    return f"MLflow UI: {start}; then http://127.0.0.1:5000/{page}"


def run_text(run_id: str, folder: Path, uri: str, experiment_id: str) -> str:
    """The last lines of a single job: its MLflow run, its folder and how to look at it.

    uri: without secrets.
    """
    return f"MLflow run {run_id}; folder {folder}\n{where_text(uri, views.run_page(experiment_id, run_id))}"
