"""Findings that installed packages bring, by an entry point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from typing import TypeVar

from ragauge.contract.errors import ConfigError
from ragauge.contract.finding import ComparisonFinding, Finding, JobFinding

GROUP = "ragauge.findings"  # of entry points: a package's finding, as package.module:Class
_KINDS = (Finding, JobFinding, ComparisonFinding)
_F = TypeVar("_F", Finding, JobFinding, ComparisonFinding)


def of_packages(kind: type[_F], names: Iterable[str]) -> Iterator[_F]:
    """The findings of installed packages that are of a kind: of a sweep, a job, or runs side by side.

    names: those of ragauge's own. ConfigError for what is no finding, and for a name that is there already.
    """
    taken = set(names)
    for point in entry_points(group=GROUP):
        where = f"entry point {point.name} = {point.value!r} (group {GROUP})"
        try:
            finding = point.load()()
        except Exception as error:
            raise ConfigError(f"{where}: cannot be loaded ({type(error).__name__}: {error})") from error
        if not isinstance(finding, _KINDS):
            raise ConfigError(f"{where}: is no finding of ragauge.contract.finding")
        if isinstance(finding, kind):
            if finding.name in taken:
                raise ConfigError(f"{where}: there is a finding {finding.name!r} already")
            taken.add(finding.name)
            yield finding
