"""The Hydra callback that pools a sweep after its jobs."""

from __future__ import annotations

from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig


class SweepCallback(Callback):
    """Ends a sweep; Hydra calls nothing of it for a single run."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Pools what the jobs left behind; its exit code is the process's."""
        from ragauge.commands import main as cli
        from ragauge.experiment import sweeps as sweep

        cli.set_exit_code(sweep.finish(config))
