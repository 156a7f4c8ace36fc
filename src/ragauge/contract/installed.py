"""Findings that installed packages bring, by an entry point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from typing import TypeVar

from ragauge.contract.errors import ConfigError
from ragauge.contract.finding import ComparisonFinding, Finding, JobFinding

# Groups of entry points, each a package's finding as package.module:Class. A job loads those of jobs alone.
GROUPS = {
    Finding: "ragauge.findings",
    JobFinding: "ragauge.job_findings",
    ComparisonFinding: "ragauge.comparison_findings",
}
_F = TypeVar("_F", Finding, JobFinding, ComparisonFinding)


def of_packages(kind: type[_F], names: Iterable[str]) -> Iterator[_F]:
    """The findings of installed packages that are of a kind: of a sweep, a job, or runs side by side.

    names: those of ragauge's own. ConfigError for what is no finding, and for a name that is there already.
    """
    taken, group = set(names), GROUPS[kind]
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        where = f"entry point {point.name} = {point.value!r} (group {group})"
        try:
            finding = point.load()()
        except Exception as error:
            raise ConfigError(f"{where}: cannot be loaded ({type(error).__name__}: {error})") from error
        if not isinstance(finding, kind):
            raise ConfigError(f"{where}: is no ragauge.contract.finding.{kind.__name__}")
        if finding.name in taken:
            raise ConfigError(f"{where}: there is a finding {finding.name!r} already")
        taken.add(finding.name)
        yield finding
