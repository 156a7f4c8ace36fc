"""Thin Hydra triggers: a sweep is pooled after its jobs."""

from __future__ import annotations

from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig


class SweepCallback(Callback):
    """Ends a sweep; a single run passes by."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Pools what the jobs left behind; its exit code is the process's."""
        from ragauge import cli, sweep

        cli.set_exit_code(sweep.finish(config))
