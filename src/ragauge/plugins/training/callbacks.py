"""A thin Hydra trigger: after several trainings, how they ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from ragauge.commands import main as cli
from ragauge.commands.callbacks import KeysCallback


class TrainingsCallback(KeysCallback):
    """Prints how the trainings of a sweep ended, too."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """The process's exit code is 0 if all finished, theirs if all failures share one, else 1."""
        from ragauge.plugins.training.jobs import sweep

        cli.set_exit_code(sweep.finish(Path(config.hydra.sweep.dir).absolute()))
