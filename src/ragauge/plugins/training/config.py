"""The root of a training's configuration: its keys, types and allowed values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, DictConfig

from ragauge.contract.checks import require, require_choice, require_number
from ragauge.contract.settings import Settings
from ragauge.experiment.setup import config
from ragauge.experiment.setup.config import check_draws


@dataclass
class TrainConfig(Settings):
    """The keys of train.yaml beyond those of a job."""

    trainer: Any = MISSING
    runs: list[str] = field(default_factory=list)
    elsewhere: Any = None
    validation: dict[str, Any] = field(default_factory=dict)
    validation_share: float = 0.2
    leaks: str = "error"
    register: str | None = None
    max_seconds: float | None = None


def register() -> None:
    """Registers the base config of train.yaml, and that of a job, with Hydra."""
    config.register()
    ConfigStore.instance().store(name="train_schema", node=TrainConfig)


def check_training(cfg: DictConfig) -> None:
    """ConfigError for a value of a training out of its range."""
    from ragauge.measures.rankings import check_rankings

    check_rankings(list(cfg.measures))
    require_choice("leaks", cfg.leaks, ("error", "drop"))
    require_number("max_seconds", cfg.max_seconds, 1, null="as long as it takes")
    check_draws(cfg)
    if cfg.register is not None:
        require("register", cfg.register, re.fullmatch(r"[^/:%\s]+", cfg.register) is not None,
                "names without /, :, % and white space")  # fmt: skip
