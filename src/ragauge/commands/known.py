"""The commands: ragauge's own, and those of plug-ins and installed packages."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any

from ragauge.contract import loading
from ragauge.contract.errors import ConfigError

# Of entry points: a plug-in's or another package's command, as a module with a function main(arguments) that
# returns the exit code, and a line ABOUT it.
GROUP = "ragauge.commands"

# Each is a module of this folder with such a function main.
COMMANDS = {
    "compare": "sets runs side by side, topic by topic; also as CSV, Markdown and LaTeX",
    "report": "writes a sweep's report, one HTML file, from its folder or an MLflow run",
    "pool": "pools the jobs in a sweep's folder again, for example of an interrupted sweep",
    "ui": "starts MLflow's UI on what was measured, and prints its address",
    "stages": "lists a job's stages with their digests, and which are stored",
    "ledger": "lists and forgets calls of LLMs that were paid for",
}
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


def module(name: str) -> Any:
    """The module of one of `names()` but help; ConfigError for one of a package that cannot be had."""
    return import_module(f"ragauge.commands.{name}") if name in COMMANDS else _loaded(_of_packages()[name])


def _of_packages() -> dict[str, EntryPoint]:
    points = {point.name: point for point in loading.points_of(GROUP)}
    for name in points.keys() & {*COMMANDS, *_HELP}:
        raise ConfigError(f"{loading.where(points[name])}: ragauge has a command {name!r}: give it another name")
    return points


def _loaded(point: EntryPoint) -> Any:
    found = loading.loaded(point)
    if not (callable(getattr(found, "main", None)) and isinstance(getattr(found, "ABOUT", None), str)):
        told = "must be a module with a function main(arguments) and a text ABOUT"
        raise ConfigError(f"{loading.where(point)}: {told}")
    return found
