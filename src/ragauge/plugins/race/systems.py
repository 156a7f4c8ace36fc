"""The systems of a race: the jobs of a sweep, composed and checked, and their values on the first topics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge.contract.current_job import working_on
from ragauge.contract.datasets import Source
from ragauge.contract.errors import ConfigError
from ragauge.contract.loading import class_of
from ragauge.contract.naming import system_names
from ragauge.contract.redact import remember
from ragauge.estimate.sampling import random_order
from ragauge.estimate.topic_samples import Sample
from ragauge.experiment.job import pin_window, prepared
from ragauge.experiment.request import JobFolder, Request
from ragauge.experiment.setup.config import refuse_keys, settle
from ragauge.store import canonical_json

if TYPE_CHECKING:
    from hydra.core.config_loader import ConfigLoader
    from omegaconf import DictConfig

    from ragauge.experiment.stages.pipeline import Pipeline

RIGHT, IR_SCORE = "right", "ir_score"


@dataclass(frozen=True)
class _These(Sample):
    """Given topics in place of a draw."""

    qids: frozenset[str] = frozenset()

    def chosen(self, qids: pd.Series, unjudged: Collection[str]) -> pd.DataFrame:
        """The topics in the form of a draw: [qid, stratum, judged]."""
        return pd.DataFrame({"qid": qids, "stratum": 0, "judged": qids.isin(self.qids)})


@dataclass
class System:
    """A sweep job in a race: its stages, its output folder, and its values so far."""

    name: str
    folder: Path
    pipeline: Pipeline
    seed: int
    known: np.ndarray = field(default_factory=lambda: np.empty(0))

    def values(self, measure: str, order: Sequence[str]) -> np.ndarray:
        """float [topics] in [0, 1], higher is better: the measure on these first topics of the random order.

        A value that is missing, such as one of a failed answer, is 0. The topics that follow those of the last call are
        answered and judged. How many may be missing is up to the job, which sees all its topics.
        """
        new = list(order[len(self.known) :])
        if measure == IR_SCORE:
            found = self.pipeline.retrieved.set_index("qid")[IR_SCORE]
        else:
            these = _These(max(len(new), 2), of="llm", qids=frozenset(new))
            with working_on(self.folder):
                found = _values(replace(self.pipeline, answered=these, max_missing_share=1.0), measure)
        values = found.reindex(new).astype("float64")
        lower = any(info.name == measure and info.direction == "lower" for info in self.pipeline.answer_measures)
        self.known = np.concatenate([self.known, (1 - values if lower else values).fillna(0.0)])
        return self.known

    @property
    def order(self) -> list[str]:
        """The qids that a sample of answers draws from, in their random order."""
        qids = self.pipeline.frame("topics")["qid"]
        rest = qids[~qids.isin(list(self.pipeline.unjudged))]
        kept = pd.Index(rest if len(rest) else qids).sort_values()
        return [str(qid) for qid in kept[random_order(kept, self.seed)]]


def _values(pipeline: Pipeline, measure: str) -> pd.Series:
    """A measure of the answers by qid; answers and judges the topics."""
    if measure == RIGHT:
        verdicts = pipeline.all_verdicts
        return verdicts["label"].eq(5).groupby(verdicts["qid"]).mean()
    values = pd.concat([part.frame("answer_values") for (_, repeat), part in pipeline.parts.items() if not repeat])
    of_measure = values[values["measure"] == measure]
    return of_measure["value"].groupby(of_measure["qid"]).mean()


def make_systems(loader: ConfigLoader, sweep: DictConfig, jobs: Sequence[Sequence[str]], measure: str) -> list[System]:
    """The jobs of a sweep, composed and checked; ConfigError if they cannot race by the measure."""
    names = system_names([list(job) for job in jobs])
    budgets = [next((o for o in job if o.startswith("n_tokens=")), "") for job in jobs]
    if len(set(names)) < len(names):
        names = [f"{name} {budget}".strip() for name, budget in zip(names, budgets, strict=True)]
    found: list[System] = []
    alike: set[str] = set()
    for number, (job, name) in enumerate(zip(jobs, names, strict=True)):
        cfg, folder = _composed(loader, sweep, job, number)
        _refuse(cfg, name)
        pin_window(cfg, folder)
        request = Request(cfg, folder)
        made = prepared(request, request.record())
        pipeline = made.pipeline
        if made.judged_later:
            raise ConfigError("hydra/sweeper=race: judge.mode=batch judges after the last job: use judge.mode=single")
        _check_measure(pipeline, measure)
        judge = pipeline.identity_of(pipeline.components.judge)
        alike.add(canonical_json([pipeline.entry("dataset").digest, judge, int(cfg.seed)]))
        if len(alike) > 1:
            raise ConfigError(f"hydra/sweeper=race: {name} has another dataset, judge or seed than {found[0].name}")
        found.append(System(name, folder.path, pipeline, int(cfg.seed)))
    return found


def _composed(loader: ConfigLoader, sweep: DictConfig, job: Sequence[str], number: int) -> tuple[DictConfig, JobFolder]:
    """A job's config as composed by Hydra's launchers, and its output folder."""
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf, open_dict

    cfg = loader.load_sweep_config(sweep, list(job))
    with open_dict(cfg):
        cfg.hydra.job.id = cfg.hydra.job.num = number
    before = HydraConfig.instance().cfg
    HydraConfig.instance().set_config(cfg)
    try:
        place = Path(str(cfg.hydra.sweep.dir)).absolute()
        choices = {str(k): str(v) for k, v in cfg.hydra.runtime.choices.items() if "/" not in str(k)}
        folder = JobFolder(place / str(cfg.hydra.sweep.subdir), place, number, choices, tuple(job))
        with open_dict(cfg):
            del cfg["hydra"]
        remember(OmegaConf.to_container(cfg, resolve=True))
    finally:
        HydraConfig.instance().cfg = before
    refuse_keys(cfg)
    settle(cfg)
    return cfg, folder


def _refuse(cfg: DictConfig, name: str) -> None:
    """ConfigError for another setting that chooses topics, or a dataset that answers none."""
    samples: Mapping[str, Any] = {f"{part}.sample": cfg[part].get("sample") for part in ("llm", "judge")}
    for key, n in samples.items():
        if n is not None:
            raise ConfigError(f"{key}={n}: hydra/sweeper=race says how many topics a system answers; leave it out")
    source = class_of("dataset", cfg.dataset.get("_target_"), Source)
    if source is not None and source.run_job:
        raise ConfigError(f"{name}: dataset={cfg.dataset.name} answers nothing, so there is no race")


def _check_measure(pipeline: Pipeline, measure: str) -> None:
    """ConfigError unless every topic has a value of the measure from 0 to 1."""
    if pipeline.components.llm.kind == "none":
        raise ConfigError("hydra/sweeper=race: llm=none answers nothing, so there is no race")
    bounded = [info.name for info in pipeline.answer_measures if info.unit in ("share", "ratio")]
    judged = [] if pipeline.components.judge.kind == "none" else [RIGHT]
    allowed = [*judged, IR_SCORE, *bounded]
    if measure not in allowed:
        raise ConfigError(f"race.measure={measure}: allowed are {', '.join(allowed)}")
