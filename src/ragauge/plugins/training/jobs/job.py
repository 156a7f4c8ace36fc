"""One training: a composed config in; an MLflow run, a model and a record in the job's folder out."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge import track
from ragauge.contract.errors import ConfigError, RagaugeError
from ragauge.contract.interruption import refuse_lost
from ragauge.contract.loading import build
from ragauge.contract.record import Record
from ragauge.contract.redact import redact, remember
from ragauge.experiment.guard import OUTPUT, STORE, guarded
from ragauge.experiment.request import JobFolder, write_config
from ragauge.experiment.setup.config import settle
from ragauge.plugins.training.config import check_training
from ragauge.plugins.training.contract import RunsTrainer, Trainer
from ragauge.plugins.training.jobs import of_dataset, of_runs
from ragauge.plugins.training.jobs.card import model_card

if TYPE_CHECKING:
    from omegaconf import DictConfig

log = logging.getLogger(__name__)

EXPERIMENT = "training"
ROLE = "training"


@dataclass(kw_only=True)
class TrainingRecord(Record):
    """The record of a training. training_digest: of what it was made from; model: its URI in MLflow."""

    training_digest: str = ""
    model_digest: str = ""
    model: str = ""


def execute(cfg: DictConfig, folder: JobFolder) -> int:
    """Trains, measures before and after, and logs; returns the exit code, as `experiment.job.execute`."""
    settle(cfg)
    record = TrainingRecord(
        status="FAILED",
        name=f"train {_trainer_name(cfg, folder)}",
        role=ROLE,
        number=folder.number,
        attempt=folder.attempt,
        choices=dict(folder.choices),
        overrides=list(folder.overrides),
        exit_code=0,
        folder=folder.path,
    )
    places: dict[str, str | Path] = {STORE: str(cfg.store), OUTPUT: folder.path}
    return guarded(
        record, lambda: _run(cfg, folder, record), places,
        lambda: track.local_database(track.absolute_uri(track.tracking_uri(cfg.tracking.uri))),
    )  # fmt: skip


def _run(cfg: DictConfig, folder: JobFolder, record: TrainingRecord) -> None:
    from omegaconf import OmegaConf

    start = time.perf_counter()
    remember(OmegaConf.to_container(cfg, resolve=True))
    check_training(cfg)
    trainer = _trainer(cfg)
    if isinstance(trainer, RunsTrainer):
        plan = of_runs.plan(cfg, folder.overrides, trainer)
    else:
        plan = of_dataset.plan(cfg, trainer)
    tracker = track.Tracker(track.tracking_uri(cfg.tracking.uri), cfg.tracking.experiment or EXPERIMENT)
    tags = {"role": ROLE, "trainer": _trainer_name(cfg, folder), "dataset": plan.on}
    tags |= {"training_digest": plan.key.digest, "seed": cfg.seed, **folder.tags}
    name = f"{cfg.register or trainer.kind} · {plan.on} · seed {cfg.seed}"
    with tracker.run(name, plan.params, tags, cfg.tracking.note, folder.ended_run) as run:
        record.run_id, record.training_digest = run.run_id, plan.key.digest
        refuse_lost()
        write_config(cfg, run.folder / "config", folder.overrides)
        run.metrics(plan.values)
        run.flush()
        result = plan.work(run)
        of_training = {
            **result.trained.values,
            "seconds_training": result.entry.seconds_made,
            **result.values,
        }
        of_training["seconds_total"] = time.perf_counter() - start
        run.metrics(of_training)
        values = {**plan.values, **of_training}
        for table, frame in {**result.trained.tables, **result.tables}.items():
            run.table(frame, f"{table}.json")
        facts = {
            "trainer": trainer.kind,
            "training_digest": plan.key.digest,
            "model_digest": result.model_digest,
            "seed": cfg.seed,
        }
        title = cfg.register or f"A tuned {trainer.kind}"
        card = model_card(title, result.base, facts, values, result.trained.facts, result.parts)
        (run.folder / "README.md").write_text(card, encoding="utf-8")
        run.tag(track.entries_tag(sorted(plan.store.used)))
        record.metrics, record.model_digest = values, result.model_digest
        record.model = result.log_model(run, card, facts)
    record.status = "FINISHED"
    for line in result.told:
        log.info("%s", line)
    log.info("%s: %s", record.name, _where(cfg, record))


def _trainer(cfg: DictConfig) -> Trainer | RunsTrainer:
    from omegaconf import OmegaConf

    spec: Any = OmegaConf.to_container(cfg.trainer, resolve=True, throw_on_missing=True)
    if track.is_model_uri(spec.get("model")):
        uri = track.tracking_uri(cfg.tracking.uri)
        spec = {**spec, "folder": str(track.model_folder(uri, spec["model"], "trainer.model"))}
    try:
        found = build("trainer", spec, {})
    except RagaugeError:
        raise
    except Exception as error:
        raise ConfigError(f"trainer: {type(error).__name__}: {error}") from error
    if isinstance(found, Trainer | RunsTrainer):
        return found
    raise ConfigError(f"trainer._target_={spec['_target_']}: inherits from neither Trainer nor RunsTrainer")


def _trainer_name(cfg: DictConfig, folder: JobFolder) -> str:
    """The chosen option; in a rerun, which has none, the class name."""
    target = str(cfg.trainer.get("_target_", "?"))
    return str(folder.choices.get("trainer", target.rpartition(".")[2].lower()))


def _where(cfg: DictConfig, record: TrainingRecord) -> str:
    registered = f", registered as {cfg.register}" if cfg.register else ""
    return redact(f"the model is {record.model}{registered}; MLflow run {record.run_id}")
