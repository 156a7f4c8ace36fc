"""Arguments of the command line that a plug-in turns into a configuration, such as `rerun=<run id>`.

An entry point of the group `ragauge.arguments` has the argument's name, and names a module like `Argument`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ragauge.contract import loading

if TYPE_CHECKING:
    from ragauge import track
    from ragauge.contract.jobs import Jobs

GROUP = "ragauge.arguments"

# Of the arguments of a command line and the folder of the configuration: what Hydra is to read in their place.
Prepare = Callable[[Sequence[str], Path], AbstractContextManager[list[str]]]


class SweepOrigin(Protocol):
    """The origin of a sweep; `tags` record it on the MLflow run."""

    @property
    def tags(self) -> Mapping[str, str]: ...

    def compared(self, tracker: track.Tracker, run: track.Run) -> list[str]:
        """Logs the comparison of the new run with its origin; returns lines to print."""


class Origin(SweepOrigin, Protocol):
    """The origin of a job, with the job's own choices and overrides.

    record: its entry in `job.json`, under the name of the argument.
    """

    @property
    def choices(self) -> Mapping[str, str]: ...
    @property
    def overrides(self) -> tuple[str, ...]: ...
    @property
    def record(self) -> Mapping[str, Any]: ...

    def changed(self, tags: Mapping[str, str]) -> list[str]:
        """The differences between the new run's tags and the old run's, a line each."""


class Argument(Protocol):
    """The interface of an argument's module.

    `prepared` is called where the argument is given. The configuration that it writes has a config group of
    the argument's name, by which the jobs composed from it are known.
    """

    prepared: Prepare

    def origin(self, conf: Path, choices: Mapping[str, str], overrides: Sequence[str]) -> Origin | None:
        """The origin of the job that was composed from this configuration folder."""

    def of_sweep(self, jobs: Jobs) -> SweepOrigin:
        """The origin of the jobs of a sweep, or of a group of it; one of them at least has the record."""


def preparing(arguments: Sequence[str]) -> Prepare | None:
    """The plug-in function that prepares these arguments for Hydra; None if they need none."""
    for point in loading.points_of(GROUP):
        if any(argument.startswith(f"{point.name}=") for argument in arguments):
            argument: Argument = loading.loaded(point)
            return argument.prepared
    return None


def origin_of(conf: Path, choices: Mapping[str, str], overrides: Sequence[str]) -> Origin | None:
    """The origin of a job; None for one configured by command line alone."""
    for point in loading.points_of(GROUP):
        if point.name in choices:
            argument: Argument = loading.loaded(point)
            return argument.origin(conf, choices, overrides)
    return None


def origin_of_sweep(jobs: Jobs) -> SweepOrigin | None:
    """The origin of comparable jobs of a sweep; None if configured by command line alone."""
    for point in loading.points_of(GROUP):
        if any(point.name in record.added for record in jobs.records):
            argument: Argument = loading.loaded(point)
            return argument.of_sweep(jobs)
    return None
