"""Pools judged rows of MLflow runs: a row per job and topic, of jobs with comparable labels and scores."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragauge import track
from ragauge.compare import SourceRuns, measured_by
from ragauge.contract import comparable
from ragauge.contract.answer_measures import from_tags, in_order
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.groups import ANSWERS
from ragauge.contract.outcomes import FEATURES
from ragauge.contract.progress import progress
from ragauge.contract.redact import redact
from ragauge.estimate.outcomes import fit_rows
from ragauge.estimate.prediction import settings_of
from ragauge.track import LoggedRun, Reader

_TABLE = "per_question.json"
_WHERE_THERE = ("judged", "stratum", "judge_status", "unanswerable", *FEATURES)  # columns of the table
_READ_BY = "read_by"  # entry of the settings, as the plug-in foresee reads it
_NAMED = 3  # runs that an error names
_BEFORE_ANSWERS = ("context", "ranking")  # what a measure looks at where a predictor may read it


@dataclass(frozen=True)
class Judged:
    """The rows that a predictor can be fitted on, and their sources.

    `outcomes` has [qid, label, features, system, sweep, dataset, retriever, llm, n_tokens], and weight where
    samples were judged. A qid stands for a question: questions of the same words are one topic, in whatever
    dataset, and the same qid in two datasets is two. `settings` are those of
    `ragauge.estimate.prediction.settings_of`. `notes` say what was left out.
    """

    outcomes: pd.DataFrame
    jobs: Sequence[LoggedRun]
    settings: Mapping[str, Any]
    notes: Sequence[str]


def read_judged(sources: Sequence[str], uri: str | None, features: Sequence[str] = ("ir_score",)) -> Judged:
    """The judged rows of the jobs that the sources name: MLflow run ids of jobs and sweeps, or folders.

    features: columns for a predictor, from FEATURES and the jobs' measures that look at no answer. If ir_score is among
    them, topics without an IR score are left out. ConfigError where the jobs' scores or labels do not mean the same
    (another measure, tokenizer or judge, its prompt and model included), naming what differs. ConfigError, too, for a
    feature that looks at the answer or that no job measured. DataError for sources that are not there,
    that did not finish, or in which no job has a judged topic with evidence.
    """
    found = SourceRuns.of(sources, uri)
    runs = sorted(found.runs, key=lambda run: run.run_id)
    further = _check_features(features, runs)
    scored = "ir_score" in features
    tables: dict[str, pd.DataFrame] = {}
    with progress(len(runs), "reading outcomes", "run") as bar:
        for run in runs:
            rows = _rows(run, found.readers[run.run_id], further, scored)
            if rows["label"].notna().any():
                tables[run.run_id] = rows
            bar.update()
    jobs = [run for run in runs if run.run_id in tables]
    notes = list(found.notes)
    if len(jobs) < len(runs):
        what = "nothing that has an IR score" if scored else "nothing"
        notes.append(f"{len(runs) - len(jobs)} job(s) judged {what}, and are left out.")
    if not jobs:
        what = "a verdict on a topic with evidence" if scored else "a verdict"
        raise DataError(
            f"runs: none of the {len(runs)} job(s) of {', '.join(sources)} has {what}; a predictor learns from jobs "
            "with a judge"
        )
    again = [run for run in jobs if run.tags.get("rerun_of") in tables]
    if again:
        notes.append(
            f"{len(again)} job(s) are reruns of others among these, so that their answers count twice: {_ids(again)}."
        )
    settings = _settings(jobs, found.readers, features)
    means = measured_by(jobs)
    _refuse_several("judge", jobs, [of["judge"] for of in means])
    settings |= _read_by(jobs, means) if further else {}
    datasets = _dataset_names(jobs)
    frames = [
        tables[run.run_id].assign(
            system=run.run_id,
            sweep=run.tags.get("sweep_id", f"job {run.run_id[:8]}"),
            dataset=datasets[_dataset(run)],
            retriever=run.params.get("recorded.system") or run.tags.get("retriever", "?"),
            llm=_llm(run),
            n_tokens=int(run.tags["n_tokens"]),
        )
        for run in jobs
    ]
    outcomes = pd.concat(frames, ignore_index=True)
    if "judged" in outcomes:  # there may be jobs that judged all topics beside those that judged a sample
        outcomes["judged"] = outcomes["judged"].ne(False)
        outcomes["stratum"] = outcomes["stratum"].fillna(0)
    asked = fit_rows(outcomes, ["ir_score"] if scored else [])
    outcomes = asked.drop(columns=["judged", "stratum", "judge_status", "unanswerable"], errors="ignore")
    return Judged(outcomes.reset_index(drop=True), jobs, settings, notes)


def _rows(run: LoggedRun, reader: Reader, further: Sequence[str], scored: bool) -> pd.DataFrame:
    """The rows of a job that a fit can use: topics judged or still to judge (if `scored`, with an IR score)."""
    try:
        table = reader.table(run.run_id, _TABLE)
    except DataError as error:
        pooling = "; judge.mode=batch writes it once the sweep is pooled (ragauge pool)"
        raise DataError(f"{error}{pooling if 'sweep_id' in run.tags else ''}") from error
    absent = sorted({"qid", "query", "ir_score", "label"} - set(table))
    if absent:
        raise DataError(f"run {run.run_id}: {_TABLE} has no column {', '.join(absent)}")
    rows = table[["label", *(name for name in (*_WHERE_THERE, *further) if name in table)]].copy()
    rows["query"] = table["query"].astype("str")
    rows["qid"] = [" ".join(str(question).casefold().split()) for question in table["query"]]
    numbers = [name for name in (*FEATURES, *further) if name in rows]
    rows[numbers] = rows[numbers].apply(pd.to_numeric).astype("float64")
    return (rows[rows["ir_score"].notna()] if scored else rows).astype({"label": "Int8"})


def _settings(jobs: Sequence[LoggedRun], readers: Mapping[str, Reader], features: Sequence[str]) -> dict[str, Any]:
    """The measure, tokenizer and budgets of all jobs, from the settings logged with each predictor."""
    found: dict[str, dict[str, Any]] = {}
    with progress(len(jobs), "reading settings", "run") as bar:
        for run in jobs:
            try:
                uri = readers[run.run_id].uri
                found[run.run_id] = track.load_predictor(uri, f"runs:/{run.run_id}/predictor")[1]
            except ConfigError as error:
                raise DataError(
                    f"run {run.run_id} does not say what its scores mean ({error}): judge it again with "
                    f"rerun={run.run_id} 'estimate.features=[{','.join(features)}]'"
                ) from error
            bar.update()
    for part in ("measure", "tokenizer"):
        _refuse_several(part, jobs, [str(found[run.run_id].get(part)) for run in jobs])
    first = found[jobs[0].run_id]
    return settings_of(first["measure"], first["tokenizer"], [int(run.tags["n_tokens"]) for run in jobs])


def _check_features(features: Sequence[str], runs: Sequence[LoggedRun]) -> list[str]:
    """The features beyond FEATURES; ConfigError for one that no job measured or that depends on the answer."""
    further = [name for name in features if name not in FEATURES]
    infos = in_order(from_tags(run.tags) for run in runs) if further else []
    of = {info.name: info.of for info in infos}
    for name in further:
        if of.get(name) not in _BEFORE_ANSWERS:
            known = [*FEATURES, *(info.name for info in infos if info.of in _BEFORE_ANSWERS)]
            why = f"looks at the {of[name]}" if name in of else "was measured by no job of these"
            raise ConfigError(f"trainer.features: {name} {why}; allowed are {', '.join(known)}")
    return further


def _read_by(jobs: Sequence[LoggedRun], means: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """The entry `read_by` of the settings: digests of measures and embedder, equal in all jobs."""
    names = {name for of in means for name in of if name.startswith(f"{ANSWERS}.") or name == "embedder"}
    found = {}
    for name in sorted(names):
        having = [(run, of[name]) for run, of in zip(jobs, means, strict=True) if name in of]
        _refuse_several(name, [run for run, _ in having], [digest for _, digest in having])
        found[name] = having[0][1]
    return {_READ_BY: found}


def _refuse_several(part: str, jobs: Sequence[LoggedRun], texts: Sequence[str]) -> None:
    """ConfigError if the jobs differ in a part of how they were measured."""
    if len(set(texts)) < 2:
        return
    groups: dict[str, list[LoggedRun]] = {}
    for run, text in zip(jobs, texts, strict=True):
        groups.setdefault(text, []).append(run)
    words = {text: comparable.in_words(part, of[0].tags, of[0].params) for text, of in groups.items()}
    if len(set(words.values())) < len(words):  # a file, a prompt or a served model, which no setting shows
        words = {text: f"{word}, {text[:40]}" for text, word in words.items()}
    listed = "; ".join(f"{redact(words[text])}: {_ids(of)}" for text, of in groups.items())
    raise ConfigError(
        f"runs: the jobs do not belong together, their {part} differs ({listed}); give runs of one {part}"
    )


def _ids(runs: Sequence[LoggedRun]) -> str:
    more = f" and {len(runs) - _NAMED} more" if len(runs) > _NAMED else ""
    return f"{', '.join(run.run_id[:8] for run in runs[:_NAMED])}{more}"


def _dataset(run: LoggedRun) -> tuple[str, str]:
    return run.tags.get("dataset", "?"), run.tags.get("dataset_digest", "?")


def _dataset_names(jobs: Sequence[LoggedRun]) -> dict[tuple[str, str], str]:
    """The dataset name of each job: its option, plus a digest if several datasets share the option."""
    every = dict.fromkeys(map(_dataset, jobs))
    options = [option for option, _ in every]
    return {
        (option, digest): option if options.count(option) == 1 else f"{option} {digest[:8]}" for option, digest in every
    }


def _llm(run: LoggedRun) -> str:
    """The model that answered, or the option if it names no model."""
    model = run.params.get("llm.chat.model") or run.params.get("llm.system")
    return re.sub(r"\s+", " ", model) if model else run.tags.get("llm", "?")
