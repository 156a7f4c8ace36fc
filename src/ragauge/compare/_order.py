"""The findings of a comparison in the order in which they are computed and shown."""

from __future__ import annotations

from collections.abc import Iterator

from ragauge.compare._equivalence import Equivalence
from ragauge.compare._metrics import MetricsLogged
from ragauge.compare._pairs import AsPeopleJudge, PairedDifferences
from ragauge.compare._settings import WhatDiffers
from ragauge.compare._slices import BySlice
from ragauge.compare._topics import ChangedCauses, DifferentTopics
from ragauge.contract.finding import ComparisonFinding
from ragauge.contract.loading import findings_of

_OWN: tuple[type[ComparisonFinding], ...] = (
    WhatDiffers,
    MetricsLogged,
    PairedDifferences,
    Equivalence,
    AsPeopleJudge,
    BySlice,
    ChangedCauses,
    DifferentTopics,
)


def comparison_findings() -> Iterator[ComparisonFinding]:
    """ragauge's findings, then those of installed packages; ConfigError if one cannot be loaded."""
    return findings_of(ComparisonFinding, _OWN)
