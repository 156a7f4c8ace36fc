"""The findings of a sweep in order of computation, and the order of display of a job or sweep; jobs do without."""

from __future__ import annotations

from collections.abc import Iterable

from ragauge.contract.finding import Finding
from ragauge.contract.loading import findings_of
from ragauge.contract.metrics import OF_EVERY_SWEEP, spelled
from ragauge.findings.also_logged import AlsoLogged
from ragauge.findings.answers import Answers
from ragauge.findings.asked_again import AskedAgain
from ragauge.findings.classes import Classes, Sample
from ragauge.findings.clusters import Clusters
from ragauge.findings.conclusion import Conclusion
from ragauge.findings.cost import Cost
from ragauge.findings.failures import Failures
from ragauge.findings.funnel import Funnel
from ragauge.findings.ir_score import ScoreByN
from ragauge.findings.leaderboard import Leaderboard
from ragauge.findings.people import BesidePeople
from ragauge.findings.predicted import PredictedShares
from ragauge.findings.probes import JudgesTried
from ragauge.findings.rankings import Rankings
from ragauge.findings.slices import Slices
from ragauge.findings.thresholds import NothingFitted, PredictorFound, ThresholdsFound, ZonesFound
from ragauge.findings.topics import WorthReading
from ragauge.findings.what_ran import Unreadable, WhatRan

_OF_SWEEPS: tuple[type[Finding], ...] = (
    Leaderboard,
    Clusters,
    ScoreByN,
    Funnel,
    Rankings,
    Classes,
    Sample,
    AskedAgain,
    BesidePeople,
    Answers,
    Failures,
    Slices,
    ThresholdsFound,
    NothingFitted,
    ZonesFound,
    PredictorFound,
    PredictedShares,
    AlsoLogged,
    Cost,
    WorthReading,
    JudgesTried,
    Unreadable,
    Conclusion,
    WhatRan,
)
# What the report and the terminal begin and end with; all else stands between them in the order above.
_FIRST, _LAST = ("conclusion", "leaderboard", "failures"), ("what_ran",)


def in_reading_order(names: Iterable[str]) -> list[str]:
    """The names of findings in order of display."""
    return sorted(names, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST) + (name in _LAST))


def findings() -> list[Finding]:
    """A sweep's findings: ragauge's own, and those of packages after the one that they name, or last.

    ConfigError for one that cannot be had.
    """
    found: list[Finding] = []
    for finding in findings_of(Finding, _OF_SWEEPS):
        names = [one.name for one in found]
        found.insert(names.index(finding.after) + 1 if finding.after in names else len(found), finding)
    return found


def metrics_of_sweeps() -> list[str]:
    """The names (some with a *) of metrics of a sweep's MLflow run."""
    return spelled([*OF_EVERY_SWEEP, *(metric for finding in findings() for metric in finding.metrics)])
