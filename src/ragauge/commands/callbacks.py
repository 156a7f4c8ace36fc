"""Thin Hydra triggers: keys are refused, a sweep composes each system once, and is pooled after its jobs."""

from __future__ import annotations

import sys
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from ragauge.commands import main as cli
from ragauge.contract.errors import ConfigError
from ragauge.contract.visible import visible
from ragauge.experiment.budgets import BudgetCopies
from ragauge.experiment.config import refuse_keys


class SweepCallback(Callback):
    """Begins a run or a sweep, and ends a sweep."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Ends the process where the config holds a key, before Hydra writes it."""
        _refuse_keys(config)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Ends the process where the config holds a key; remembers where the sweep is tracked.

        Its jobs are composed by `BudgetCopies`.
        """
        _refuse_keys(config)
        hydra = GlobalHydra.instance().hydra
        if hydra is not None:
            hydra.config_loader = BudgetCopies(hydra.config_loader)  # type: ignore[assignment]
        cli.sweep_begins(config.tracking.uri)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Pools what the jobs left behind; its exit code is the process's."""
        from ragauge.experiment import sweeps as sweep

        cli.set_exit_code(sweep.finish(config))


def _refuse_keys(config: DictConfig) -> None:
    try:
        refuse_keys(config)
    except ConfigError as error:
        print(f"error: {visible(error)}", file=sys.stderr)
        # Hydra makes a warning of every Exception in a callback, and goes on.
        raise SystemExit(error.exit_code) from None
