"""A training on the judged rows of MLflow runs: the model is a predictor of judge classes; no dataset is read."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge import track
from ragauge.contract.engine import LocalEngine
from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import content_digest
from ragauge.contract.identity import identity
from ragauge.experiment.stages.components import instantiate_components
from ragauge.plugins.training.contract import MODEL, RunsTrainer
from ragauge.plugins.training.jobs.judged import read_judged
from ragauge.plugins.training.jobs.plan import Result, TrainingPlan, read_trained, write_trained
from ragauge.plugins.training.trainers.sources import CONSTANT, POOLED, SINGLE, mean_errors
from ragauge.retrieval.embedders import CachedEmbedder
from ragauge.store import Key, Store

if TYPE_CHECKING:
    from omegaconf import DictConfig

log = logging.getLogger(__name__)

_OF_DATASETS = ("dataset", "validation", "elsewhere", "max_seconds")  # keys that say nothing here
_LOGGED = ("trainer", "runs", "seed", "bootstrap", "register", "store", "tracking")
_FILE = "data/predictor.json"  # of the model: all that its probabilities depend on
_NAMES = {POOLED: "all others", CONSTANT: "their class shares", SINGLE: "a single sweep"}


def plan(cfg: DictConfig, overrides: Sequence[str], trainer: RunsTrainer) -> TrainingPlan:
    """The training on the config's `runs`; ConfigError and DataError if they cannot be trained on."""
    from omegaconf import OmegaConf

    given = [key.lstrip("+~") for key, _, _ in (override.partition("=") for override in overrides)]
    of_dataset = [key for key in given if key.partition(".")[0].partition("@")[0] in _OF_DATASETS]
    if of_dataset:
        raise ConfigError(f"{of_dataset[0]}: trainer=predictor learns from runs=[...], and from no dataset")
    if not cfg.runs:
        raise ConfigError(
            "runs=[]: give the MLflow ids, or the folders, of the jobs and sweeps whose verdicts "
            "trainer=predictor learns from"
        )
    judged = read_judged(list(dict.fromkeys(cfg.runs)), cfg.tracking.uri, trainer.features)
    for note in judged.notes:
        log.warning("%s", note)
    store = Store(Path(cfg.store))
    reads_questions = "embedder" in trainer.uses
    embedder = instantiate_components(cfg).embedder
    params = {
        **({"embedder": identity(embedder)} if reads_questions else {}),
        "trainer": identity(trainer),
        "settings": judged.settings,
        "seed": int(cfg.seed),
        "bootstrap": int(cfg.bootstrap),
    }
    version = trainer.version
    key = Key("trained", version, params, {"outcomes": content_digest(judged.outcomes)})
    rows = judged.outcomes
    plain: Any = OmegaConf.to_container(cfg, resolve=True)

    def embed(questions: Sequence[str]) -> np.ndarray:
        return CachedEmbedder(embedder, store.root, LocalEngine()).embed(questions, "query")

    def make(folder: Path) -> None:
        fitted = trainer.fit(rows, int(cfg.bootstrap), int(cfg.seed), embed)
        settings = {**judged.settings, **fitted.settings}
        track.save_predictor(folder / MODEL, fitted.model, fitted.example, settings)
        write_trained(fitted.trained, folder)

    def work(run: track.Run) -> Result:
        run.table(_of_jobs(judged.jobs, rows), "jobs.json")
        entry = store.get(key, make)
        trained = read_trained(entry.path)

        def log_model(run: track.Run, card: str, facts: Mapping[str, Any]) -> str:
            run.flush()  # what is registered has all its files
            return run.predictor(entry.path / MODEL, cfg.register)

        return Result(
            entry=entry,
            trained=trained,
            model_digest=hashlib.sha256((entry.path / MODEL / _FILE).read_bytes()).hexdigest(),
            base="multinomial logistic regression",
            log_model=log_model,
            parts=_transfer_part(trained.tables),
            told=_told(trained.values, trained.tables),
        )

    counts = {"jobs": float(len(judged.jobs)), "sweeps": float(rows["sweep"].nunique())}
    on = ", ".join(sorted(rows["dataset"].unique()))
    return TrainingPlan(key, store, on, track.flatten({name: plain[name] for name in _LOGGED}), counts, work)


def _of_jobs(jobs: Sequence[track.LoggedRun], rows: pd.DataFrame) -> pd.DataFrame:
    """A row per job: its settings, and its number of judged rows."""
    of_job = rows.groupby("system", sort=False)
    groups = of_job[["sweep", "dataset", "retriever", "llm", "n_tokens"]].first()
    counts = of_job["label"].count().rename("judged")
    names = pd.Series({run.run_id: run.name for run in jobs}, name="name")
    return names.to_frame().join(groups).join(counts).rename_axis("run_id").reset_index()


def _errors(tables: Mapping[str, pd.DataFrame]) -> dict[str, dict[str, float]]:
    """{left out: {fitted on: mean absolute difference}}."""
    return {
        name.removeprefix("transfer_"): mean_errors(table)
        for name, table in tables.items()
        if name.startswith("transfer_")
    }


def _transfer_part(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """The card's section on class shares of left-out groups; [] if no group could be left out."""
    found = _errors(tables)
    if not found:
        return []
    head = f"| left out | groups | {' | '.join(_NAMES.values())} |"
    lines = ["## Class shares of what was left out, mean absolute difference from the judged ones", "", head]
    lines.append("|---" * (len(_NAMES) + 2) + "|")
    for by, errors in found.items():
        groups = tables[f"transfer_{by}"]["group"].nunique()
        cells = " | ".join(f"{errors[fit]:.3f}" if fit in errors else "" for fit in _NAMES)
        lines.append(f"| {by} | {groups} | {cells} |")
    return ["\n".join(lines)]


def _told(values: Mapping[str, float], tables: Mapping[str, pd.DataFrame]) -> list[str]:
    lines = [
        f"  {values['judged_rows']:,.0f} judged rows, {values['topics']:,.0f} topics; log loss "
        f"{values['predictor_log_loss']:.3f} on topics not seen, {values['predictor_log_loss_base']:.3f} by "
        "the class shares alone"
    ]
    if values["rows_left_out"]:
        lines.append(f"  {values['rows_left_out']:,.0f} rows without a verdict or a feature are left out")
    for by, errors in _errors(tables).items():
        shown = ", ".join(f"{_NAMES[fit]} {errors[fit]:.3f}" for fit in _NAMES if fit in errors)
        lines.append(f"  class shares of a {by} left out are off by, if predicted from: {shown}")
    return lines
