"""The findings of a comparison in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Iterator

from ragauge.compare._causes import ChangedCauses
from ragauge.compare._people import AsPeopleJudge
from ragauge.compare._slices import BySlice
from ragauge.contract.finding import ComparisonFinding
from ragauge.contract.loading import findings_of

_OWN: tuple[type[ComparisonFinding], ...] = (AsPeopleJudge, BySlice, ChangedCauses)


def comparison_findings() -> Iterator[ComparisonFinding]:
    """ragauge's own, then those of installed packages; ConfigError for one that cannot be had."""
    return findings_of(ComparisonFinding, _OWN)
