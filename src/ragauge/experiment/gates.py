"""Finds, by entry point, the packages that enforce a job's `gate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragauge.contract import loading
from ragauge.contract.errors import ConfigError

if TYPE_CHECKING:
    from omegaconf import DictConfig

# Of entry points: a module with the functions `check(cfg, pipeline, name, experiment, sweep_id)`, called before any
# work, `check_recorded(cfg)`, its like for a job of recorded outcomes, and `enforce(cfg, record, slices)`, called
# with what a finished job has on record; with `judge.looks`, `judge_in_looks(job, run)` judges the sample before. They
# raise ConfigError, DataError and GateError.
GROUP = "ragauge.gates"


def gates(cfg: DictConfig) -> list[Any]:
    """The modules that enforce the job's `gate`; none without rules.

    ConfigError for rules without an installed package that reads them.
    """
    if not cfg.gate:
        return []
    found = [loading.loaded(point) for point in loading.points_of(GROUP)]
    if not found:
        raise ConfigError(f"gate: nothing is installed that holds a job to it (entry points of the group {GROUP})")
    return found
