"""The findings of a sweep in the order in which they are computed and shown."""

from __future__ import annotations

from ragauge.contract.finding import Finding
from ragauge.contract.loading import findings_of
from ragauge.findings.answers import Answers
from ragauge.findings.asked_again import AskedAgain
from ragauge.findings.budgets import OverBudgets
from ragauge.findings.classes import Classes
from ragauge.findings.cost import Cost
from ragauge.findings.failures import Failures
from ragauge.findings.foresight import Foresees
from ragauge.findings.funnel import Funnel
from ragauge.findings.ir_score import ScoreByN
from ragauge.findings.leaderboard import Leaderboard
from ragauge.findings.pareto import ScoreAgainstCost
from ragauge.findings.parts import Parts
from ragauge.findings.people import BesidePeople
from ragauge.findings.predicted import PredictedShares
from ragauge.findings.predictor import PredictorFound
from ragauge.findings.rankings import Rankings
from ragauge.findings.sample import Sample
from ragauge.findings.slices import Slices
from ragauge.findings.thresholds import NothingFitted, ThresholdsFound
from ragauge.findings.topics import WorthReading
from ragauge.findings.transfer import Transfers
from ragauge.findings.unreadable import Unreadable
from ragauge.findings.what_ran import WhatRan
from ragauge.findings.zones import ZonesFound

_OWN: tuple[type[Finding], ...] = (
    Leaderboard,
    ScoreByN,
    OverBudgets,
    Parts,
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
    Transfers,
    Foresees,
    ScoreAgainstCost,
    Cost,
    WorthReading,
    Unreadable,
    WhatRan,
)


def findings() -> list[Finding]:
    """ragauge's own and those of packages, behind all others or the one that they name.

    ConfigError for one that cannot be had.
    """
    found: list[Finding] = []
    for finding in findings_of(Finding, _OWN):
        names = [one.name for one in found]
        found.insert(names.index(finding.after) + 1 if finding.after in names else len(found), finding)
    return found
