"""A thin Hydra callback that reports how the trainings of a sweep ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from ragauge.commands import main as cli
from ragauge.commands.callbacks import KeysCallback


class TrainingsCallback(KeysCallback):
    """Prints how the trainings of a sweep ended."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Sets the exit code: 0 if all finished, the shared code if all failures have one, else 1."""
        from ragauge.plugins.training.jobs import sweep

        cli.set_exit_code(sweep.finish(Path(config.hydra.sweep.dir).absolute()))
