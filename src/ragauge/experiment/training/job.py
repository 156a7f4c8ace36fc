"""One training: a composed config in; an MLflow run, a model and a record in the job's folder out."""

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
from ragauge.contract.build import build
from ragauge.contract.errors import ConfigError, RagaugeError
from ragauge.contract.identity import identity
from ragauge.contract.redact import redact, remember
from ragauge.contract.training import MODEL, Trained, Trainer, TrainingTools
from ragauge.experiment.config import check_training, settle
from ragauge.experiment.folder import JobFolder
from ragauge.experiment.guard import guarded
from ragauge.experiment.job import write_config
from ragauge.experiment.training.card import model_card
from ragauge.experiment.training.comparison import as_metrics, gains, ranked_by
from ragauge.experiment.training.splits import Splits, load_splits, training_data
from ragauge.retrieval.pretrained import model_digest
from ragauge.store import Entry, Key

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.experiment.pipeline import Pipeline

log = logging.getLogger(__name__)

EXPERIMENT = "training"
_TRAINED = "trained.json"
_FLUSH = 5.0  # seconds between two writings of step metrics


def execute(cfg: DictConfig, folder: JobFolder) -> int:
    """Trains, measures before and after, and logs; returns the exit code, as `experiment.job.execute`."""
    settle(cfg)
    record: dict[str, Any] = {
        "status": "FAILED",
        "name": f"train {_trainer_name(cfg, folder)}",
        "role": "training",
        "choices": dict(folder.choices),
        "overrides": list(folder.overrides),
        "exit_code": 0,
    }
    return guarded(folder, record, lambda: _run(cfg, folder, record), lambda: [cfg.store, folder.path])


def _run(cfg: DictConfig, folder: JobFolder, record: dict[str, Any]) -> None:
    from omegaconf import OmegaConf

    start = time.perf_counter()
    remember(OmegaConf.to_container(cfg, resolve=True))
    check_training(cfg)
    trainer = _trainer(cfg)
    trainer.base()  # a model that is not there is told before any work
    splits = load_splits(cfg)
    key = _key(cfg, trainer, splits)
    plain: dict[str, Any] = OmegaConf.to_container(cfg, resolve=True)  # type: ignore[assignment]
    tracker = track.Tracker(track.tracking_uri(cfg.tracking.uri), cfg.tracking.experiment or EXPERIMENT)
    tags = {"role": "training", "trainer": _trainer_name(cfg, folder), "dataset": cfg.dataset.name}
    tags |= {"training_digest": key.digest, "seed": cfg.seed}
    with tracker.run(_name(cfg, trainer), track.flatten(plain), tags, note=cfg.tracking.note) as run:
        record |= {"run_id": run.run_id, "training_digest": key.digest}
        (run.folder / "config").mkdir()
        write_config(cfg, folder, run.folder / "config")
        values = splits.values()
        run.metrics(values)
        run.flush()
        entry, trained = _train(cfg, trainer, splits, key, run)
        model = entry.path / MODEL
        values |= dict(trained.values)
        values["seconds_training"] = entry.seconds_made
        table = _compared(cfg, trainer, splits, model)
        for side, of_side in table.groupby("dataset"):
            values |= as_metrics(of_side, "" if side == "validation" else f"{side}_")
        values["seconds_total"] = time.perf_counter() - start
        run.metrics(values)
        for name, frame in trained.tables.items():
            run.table(frame, f"{name}.json")
        if len(table):
            run.table(table, "before_after.json")
        facts = {
            "trainer": trainer.kind,
            "training_digest": key.digest,
            "model_digest": model_digest(model),
            "seed": cfg.seed,
        }
        card = model_card(trainer, cfg.register, trained, facts, values, table)
        (run.folder / "README.md").write_text(card, encoding="utf-8")
        run.tag(track.entries_tag(sorted(splits.training.store.used)))
        record |= {"metrics": values, "model_digest": facts["model_digest"]}
        record["model"] = run.network(model, card, facts, cfg.register)
    record["status"] = "FINISHED"
    for line in _told(table):
        log.info("%s", line)
    log.info("%s: %s", record["name"], _where(cfg, record))


def _trainer(cfg: DictConfig) -> Trainer:
    from omegaconf import OmegaConf

    spec: Any = OmegaConf.to_container(cfg.trainer, resolve=True, throw_on_missing=True)
    if track.is_model_uri(spec.get("model")):
        uri = track.tracking_uri(cfg.tracking.uri)
        spec = {**spec, "folder": str(track.model_folder(uri, spec["model"], "trainer.model"))}
    try:
        made: Trainer = build("trainer", spec, {})
    except RagaugeError:
        raise
    except Exception as error:
        raise ConfigError(f"trainer: {type(error).__name__}: {error}") from error
    return made


def _trainer_name(cfg: DictConfig, folder: JobFolder) -> str:
    """The option, or where there was none (a rerun) the name of the class."""
    target = str(cfg.trainer.get("_target_", "?"))
    return str(folder.choices.get("trainer", target.rpartition(".")[2].lower()))


def _name(cfg: DictConfig, trainer: Trainer) -> str:
    return f"{cfg.register or trainer.kind} · {cfg.dataset.name} · seed {cfg.seed}"


def _key(cfg: DictConfig, trainer: Trainer, splits: Splits) -> Key:
    """What the trained model depends on: trainer, base, seed, time limit, shared models, and the data."""
    job = splits.training
    shared = {
        name: job.identity_of(getattr(job.components, name)) for name in sorted(trainer.uses - {"chat"})
    }
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
    return Key("trained", int(getattr(trainer, "version", 1)), params, inputs)


def _train(
    cfg: DictConfig, trainer: Trainer, splits: Splits, key: Key, run: track.Run
) -> tuple[Entry, Trained]:
    """The stored outcome of the training, made now unless it is there."""
    store = splits.training.store
    checkpoints = store.root / "checkpoints" / key.digest
    written = time.monotonic()

    def report(step: int, values: Mapping[str, float]) -> None:
        nonlocal written
        curves = {name: {step: float(v)} for name, v in values.items() if math.isfinite(v)}
        run.metrics({}, curves)
        if time.monotonic() - written >= _FLUSH:
            run.flush()
            written = time.monotonic()

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
        trained = trainer.train(data, held_out, folder, tools)
        for name, frame in trained.tables.items():
            frame.to_parquet(folder / f"{name}.parquet", index=False)
        kept = {"values": dict(trained.values), "facts": dict(trained.facts), "tables": list(trained.tables)}
        (folder / _TRAINED).write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")

    entry = store.get(key, make)
    if entry.made:
        shutil.rmtree(checkpoints, ignore_errors=True)
    else:
        log.info("this training was done before; its model is %s", entry.path / MODEL)
    kept = json.loads((entry.path / _TRAINED).read_text(encoding="utf-8"))
    tables = {name: pd.read_parquet(entry.path / f"{name}.parquet") for name in kept["tables"]}
    return entry, Trained(tables, kept["values"], kept["facts"])


def _compared(cfg: DictConfig, trainer: Trainer, splits: Splits, model: Path) -> pd.DataFrame:
    """What the model's systems retrieve before and after, on the validation topics and elsewhere."""
    found = []
    sides: list[tuple[str, Pipeline]] = [("validation", splits.validation)]
    sides += [("elsewhere", splits.elsewhere)] if splits.elsewhere else []
    for name, pipeline in sides:
        before, after = (trainer.systems(pipeline.components, folder) for folder in (None, model))
        if not before:
            break
        shared = splits.shared if name == "validation" else ()
        ranked = (ranked_by(pipeline, before), ranked_by(pipeline, after))
        found.append(gains(*ranked, name, shared, int(cfg.bootstrap), int(cfg.seed)))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame({"dataset": [], "topics": []})


def _told(table: pd.DataFrame) -> list[str]:
    """A line per row of the comparison."""
    if table.empty:
        return []
    what = (table["dataset"] + table["topics"].map({"all": "", "apart": ", no shared document"})).tolist()
    width = max(map(len, what)), max(map(len, table["system"])), max(map(len, table["measure"]))
    return [
        f"  {where:<{width[0]}}  {row.system:<{width[1]}}  {row.measure:<{width[2]}}  {row.before:.3f} -> "
        f"{row.after:.3f}  ({row.difference:+.3f}, {row.lo:+.3f} to {row.hi:+.3f}; {row.n} topics)"
        for where, row in zip(what, table.itertuples(), strict=True)
    ]


def _where(cfg: DictConfig, record: Mapping[str, Any]) -> str:
    registered = f", registered as {cfg.register}" if cfg.register else ""
    return redact(f"the model is {record['model']}{registered}; MLflow run {record['run_id']}")
