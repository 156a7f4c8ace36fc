"""A training on a dataset: honest splits, the trainer, and its systems before and after."""

from __future__ import annotations

import json
import logging
import math
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge import track
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import identity
from ragauge.plugins.training.contract import MODEL, Trained, Trainer, TrainingTools
from ragauge.plugins.training.jobs.card import before_and_after
from ragauge.plugins.training.jobs.comparison import as_metrics, gains, ranked_by
from ragauge.plugins.training.jobs.plan import Result, TrainingPlan, read_trained, write_trained
from ragauge.plugins.training.jobs.splits import Splits, load_splits, training_data
from ragauge.retrieval.pretrained import model_digest
from ragauge.store import Entry, Key

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.experiment.stages.pipeline import Pipeline

log = logging.getLogger(__name__)

_CURVES = "curves.json"
_FLUSH = 5.0  # seconds between two writings of step metrics


def plan(cfg: DictConfig, trainer: Trainer) -> TrainingPlan:
    """The training on the config's dataset; ConfigError and DataError if it cannot be trained on."""
    from omegaconf import OmegaConf

    if cfg.runs:
        raise ConfigError(
            f"runs: a trainer of kind {trainer.kind} learns from a dataset; runs=[...] is what "
            "trainer=predictor learns from"
        )
    base = trainer.base()  # a model that is not there is told before any work
    splits = load_splits(cfg)
    key = _key(cfg, trainer, splits)
    plain: Any = OmegaConf.to_container(cfg, resolve=True)

    def work(run: track.Run) -> Result:
        entry, trained = _train(cfg, trainer, splits, key, run)
        model = entry.path / MODEL
        table = _compared(cfg, trainer, splits, model)
        values: dict[str, float] = {}
        for side, of_side in table.groupby("dataset"):
            values |= as_metrics(of_side, "" if side == "validation" else f"{side}_")

        def log_model(run: track.Run, card: str, facts: Mapping[str, Any]) -> str:
            return run.network(model, card, facts, cfg.register)

        return Result(
            entry=entry,
            trained=trained,
            model_digest=model_digest(model),
            base=str(base.get("model", "?")),
            log_model=log_model,
            values=values,
            tables={"before_after": table} if len(table) else {},
            parts=before_and_after(table),
            told=_told(table),
        )

    return TrainingPlan(key, splits.training.store, str(cfg.dataset.name), track.flatten(plain), splits.values(), work)


def _key(cfg: DictConfig, trainer: Trainer, splits: Splits) -> Key:
    """Everything that the trained model depends on: trainer, base, seed, time limit, shared models, and the data."""
    job = splits.training
    shared = {name: job.identity_of(getattr(job.components, name)) for name in sorted(trainer.uses - {"chat"})}
    if "chat" in trainer.uses:
        shared["llm"] = job.identity_of(job.components.llm)
    params = {
        "trainer": identity(trainer),
        "base": dict(trainer.base()),
        "seed": int(cfg.seed),
        "max_seconds": None if cfg.max_seconds is None else float(cfg.max_seconds),
        **shared,
    }
    inputs = {
        f"{side}_{name}": of.entry_of(name).frame_digest(name)
        for side, of in (("training", splits.training), ("validation", splits.validation))
        for name in ("topics", "evidence", "chunks", "run")
    }
    return Key("trained", trainer.version, params, inputs)


def _train(cfg: DictConfig, trainer: Trainer, splits: Splits, key: Key, run: track.Run) -> tuple[Entry, Trained]:
    """The stored outcome of the training; trains if there is none."""
    store = splits.training.store
    checkpoints = store.checkpoints(key)
    curves: dict[str, dict[int, float]] = {}
    written = time.monotonic()

    def report(step: int, values: Mapping[str, float]) -> None:
        nonlocal written
        now = {name: float(v) for name, v in values.items() if math.isfinite(v)}
        for name, value in now.items():
            curves.setdefault(name, {})[step] = value
        run.metrics({}, {name: {step: value} for name, value in now.items()})
        if time.monotonic() - written >= _FLUSH:
            # A training of hours does not end because of its charts.
            written = time.monotonic() if run.flushed() else math.inf

    def make(folder: Path) -> None:
        checkpoints.mkdir(parents=True, exist_ok=True)
        tools = TrainingTools(
            splits.training.tools.limited_to(trainer.uses, f"trainer {trainer.kind}"),
            checkpoints,
            int(cfg.seed),
            None if cfg.max_seconds is None else float(cfg.max_seconds),
            report,
        )
        data, held_out = training_data(splits.training), training_data(splits.validation)
        write_trained(trainer.train(data, held_out, folder, tools), folder)
        (folder / _CURVES).write_text(json.dumps(curves), encoding="utf-8")

    entry = store.get(key, make)
    if entry.made:
        shutil.rmtree(checkpoints, ignore_errors=True)
    else:
        log.info("this training was done before; its model is %s", entry.path / MODEL)
        run.metrics({}, json.loads((entry.path / _CURVES).read_text(encoding="utf-8")))
    return entry, read_trained(entry.path)


def _compared(cfg: DictConfig, trainer: Trainer, splits: Splits, model: Path) -> pd.DataFrame:
    """Compares the model's systems before and after, on the validation topics and on other domains."""
    found = []
    sides: list[tuple[str, Pipeline]] = [("validation", splits.validation)]
    sides += [("elsewhere", splits.elsewhere)] if splits.elsewhere else []
    for name, pipeline in sides:
        before, after = (trainer.systems(pipeline.components, folder) for folder in (None, model))
        if not before:
            break
        shared = splits.shared if name == "validation" else ()
        ranked = (ranked_by(pipeline, before), ranked_by(pipeline, after))
        found.append(gains(*ranked, name, shared, int(cfg.seed)))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame({"dataset": [], "topics": []})


def _told(table: pd.DataFrame) -> list[str]:
    """A line of text per row of the comparison."""
    if table.empty:
        return []
    what = (table["dataset"] + table["topics"].map({"all": "", "apart": ", no shared document"})).tolist()
    width = max(map(len, what)), max(map(len, table["system"])), max(map(len, table["measure"]))
    return [
        f"  {where:<{width[0]}}  {row.system:<{width[1]}}  {row.measure:<{width[2]}}  {row.before:.3f} -> "
        f"{row.after:.3f}  ({row.difference:+.3f}, {row.lo:+.3f} to {row.hi:+.3f}; {row.n} topics)"
        for where, row in zip(what, table.itertuples(), strict=True)
    ]
