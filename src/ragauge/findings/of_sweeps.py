"""The findings of a sweep in order of computation, a list that jobs do not need."""

from __future__ import annotations

from ragauge.contract.finding import Finding
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
from ragauge.findings.rankings import Rankings
from ragauge.findings.slices import Slices
from ragauge.findings.thresholds import NothingFitted, PredictorFound, ThresholdsFound, ZonesFound
from ragauge.findings.topics import WorthReading
from ragauge.findings.what_ran import Unreadable, WhatRan

OF_SWEEPS: tuple[type[Finding], ...] = (
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
    Cost,
    WorthReading,
    Unreadable,
    Conclusion,
    WhatRan,
)
