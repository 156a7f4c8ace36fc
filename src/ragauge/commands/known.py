"""The commands: ragauge's own, and those of plug-ins and installed packages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any

from ragauge.contract import loading
from ragauge.contract.errors import ConfigError

# Of entry points: a plug-in's or another package's command, as a module with a function main(arguments) that
# returns the exit code, and a line ABOUT it.
GROUP = "ragauge.commands"

# By name: where in this folder its function (arguments) stands that returns the exit code, and what it does.
_OWN = {
    "compare": ("compare:main", "sets runs side by side, topic by topic; also as CSV, Markdown and LaTeX"),
    "report": ("results:report", "writes a sweep's report, one HTML file, from its folder or an MLflow run"),
    "pool": ("results:pool", "pools the jobs in a sweep's folder again, for example of an interrupted sweep"),
    "stages": ("stages:main", "lists a job's stages with their digests, and which are stored"),
}
COMMANDS = {name: about for name, (_, about) in _OWN.items()}
_HELP = {"help": "shows the commands, and how to run and sweep"}


def names() -> list[str]:
    """The names of all commands, those of plug-ins and packages behind ragauge's own."""
    return [*COMMANDS, *_of_packages(), *_HELP]


def lines() -> list[str]:
    """A line per command: its name, and what it does."""
    packages = {name: _loaded(point).ABOUT for name, point in _of_packages().items()}
    told = {**COMMANDS, **packages, **_HELP}
    width = max(map(len, told))
    return [f"  {name:<{width}}  {what}" for name, what in told.items()]


def command(name: str) -> Callable[[Sequence[str]], int]:
    """The function of a command in `names()` except help; ConfigError if its package cannot be loaded."""
    if name in _OWN:
        module, _, function = _OWN[name][0].partition(":")
        found: Callable[[Sequence[str]], int] = getattr(import_module(f"ragauge.commands.{module}"), function)
    else:
        found = _loaded(_of_packages()[name]).main
    return found


def _of_packages() -> dict[str, EntryPoint]:
    points: dict[str, EntryPoint] = {}
    # Those of ragauge's plug-ins first, whose names no other package takes.
    for point in sorted(loading.points_of(GROUP), key=lambda point: not point.value.startswith("ragauge.plugins.")):
        if point.name in (*COMMANDS, *_HELP, *points):
            raise ConfigError(f"{loading.where(point)}: ragauge has a command {point.name!r}: give it another name")
        points[point.name] = point
    return points


def _loaded(point: EntryPoint) -> Any:
    found = loading.loaded(point)
    if not (callable(getattr(found, "main", None)) and isinstance(getattr(found, "ABOUT", None), str)):
        told = "must be a module with a function main(arguments) and a text ABOUT"
        raise ConfigError(f"{loading.where(point)}: {told}")
    return found
