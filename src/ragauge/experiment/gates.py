"""Finds, by entry point, the packages that enforce a job's `gate`."""

from __future__ import annotations

from typing import Any

from ragauge.contract import loading
from ragauge.contract.errors import ConfigError
from ragauge.contract.settings import Settings

# Of entry points: a module with the functions `check(settings, pipeline, name, experiment, sweep_id)`, called before
# any work, `check_recorded(settings)`, its like for a job of recorded outcomes, and
# `enforce(settings, record, slices)`, called with what a finished job has on record; with `judge.looks`,
# `judge_in_looks(job, run)` judges the sample before. They raise ConfigError, DataError and GateError.
GROUP = "ragauge.gates"


def gates(settings: Settings) -> list[Any]:
    """The modules that enforce the job's `gate`; none without rules.

    ConfigError for rules without an installed package that reads them.
    """
    if not settings.gate:
        return []
    found = [loading.loaded(point) for point in loading.points_of(GROUP)]
    if not found:
        raise ConfigError(f"gate: nothing is installed that holds a job to it (entry points of the group {GROUP})")
    return found
