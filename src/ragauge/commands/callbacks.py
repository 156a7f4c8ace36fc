"""Thin Hydra triggers: a sweep composes each system once, and is pooled after its jobs."""

from __future__ import annotations

from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from ragauge.experiment.budgets import BudgetCopies


class SweepCallback(Callback):
    """Begins and ends a sweep; a single run passes by."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Has the sweep's jobs composed by `BudgetCopies`."""
        hydra = GlobalHydra.instance().hydra
        if hydra is not None:
            hydra.config_loader = BudgetCopies(hydra.config_loader)  # type: ignore[assignment]

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Pools what the jobs left behind; its exit code is the process's."""
        from ragauge.commands import main as cli
        from ragauge.experiment import sweeps as sweep

        cli.set_exit_code(sweep.finish(config))
