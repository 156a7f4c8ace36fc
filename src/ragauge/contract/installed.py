"""What plug-ins and installed packages bring by an entry point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, TypeVar

from ragauge.contract.errors import ConfigError

if TYPE_CHECKING:
    from ragauge.contract.finding import ComparisonFinding, Finding, JobFinding

    _F = TypeVar("_F", Finding, JobFinding, ComparisonFinding)


def points_of(group: str) -> list[EntryPoint]:
    """The entry points of a group, by name."""
    return sorted(entry_points(group=group), key=lambda point: point.name)


def where(point: EntryPoint) -> str:
    """An entry point, as errors name it."""
    return f"entry point {point.name} = {point.value!r} (group {point.group})"


def loaded(point: EntryPoint) -> Any:
    """What an entry point names; ConfigError where it cannot be loaded."""
    try:
        return point.load()
    except Exception as error:
        raise _unloaded(point, error) from error


def findings_of(kind: type[_F], own: Iterable[type[_F]]) -> Iterator[_F]:
    """ragauge's own findings of a kind (of a sweep, a job, or runs side by side), then those of packages.

    A job loads those of jobs alone. ConfigError for what is no such finding, and for a name that is there
    already.
    """
    taken = set()
    for cls in own:
        taken.add(cls.name)
        yield cls()
    for point in points_of(kind.group):
        made = loaded(point)
        try:
            finding = made()
        except Exception as error:
            raise _unloaded(point, error) from error
        if not isinstance(finding, kind):
            raise ConfigError(f"{where(point)}: is no ragauge.contract.finding.{kind.__name__}")
        if finding.name in taken:
            raise ConfigError(f"{where(point)}: there is a finding {finding.name!r} already")
        taken.add(finding.name)
        yield finding


def _unloaded(point: EntryPoint, error: Exception) -> ConfigError:
    return ConfigError(f"{where(point)}: cannot be loaded ({type(error).__name__}: {error})")
