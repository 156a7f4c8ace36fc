"""The command `ragauge train`: tunes a network by train.yaml, which Hydra composes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.experiment.arguments import Prepare

ABOUT = "trains an encoder, a reranker, a judge or a predictor of judge classes, and registers it"
_VALIDATION = re.compile(r"^\+{0,2}(?=validation\.)")


def main(arguments: Sequence[str]) -> int:
    """Runs one training, or with -m several; returns the exit code."""
    from ragauge.commands.main import run_hydra
    from ragauge.plugins.training import config

    config.register()
    return run_hydra("train", run_training, [_VALIDATION.sub("++", argument) for argument in arguments], _preparing)


def _preparing(arguments: Sequence[str]) -> Prepare | None:
    """Prepares `rerun=<run id of a training>` by the plug-in that reruns jobs."""
    if not any(argument.startswith("rerun=") for argument in arguments):
        return None
    from ragauge.plugins.training.jobs import again

    return again.prepared


def run_training(cfg: DictConfig) -> None:
    """Runs one training of a sweep, or a single one, and sets the exit code."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    from ragauge.commands.main import set_exit_code
    from ragauge.contract import interruption
    from ragauge.contract.redact import guard_output
    from ragauge.experiment.request import JobFolder
    from ragauge.plugins.training.jobs.job import execute

    guard_output()
    hydra_cfg = HydraConfig.get()
    multirun = hydra_cfg.mode == RunMode.MULTIRUN
    folder = JobFolder(
        path=Path(hydra_cfg.runtime.output_dir),
        sweep=Path(hydra_cfg.sweep.dir).absolute() if multirun else None,
        number=int(hydra_cfg.job.num) if multirun else 0,
        choices={str(k): str(v) for k, v in hydra_cfg.runtime.choices.items() if "/" not in str(k)},
        overrides=tuple(hydra_cfg.overrides.task),
    )
    with interruption.working():
        set_exit_code(execute(cfg, folder))
