"""The findings of a job in the order in which they are computed and shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ragauge.contract.finding import JobFinding
from ragauge.contract.loading import findings_of
from ragauge.experiment.findings.answers import AnswersMeasured, RecordedAnswers
from ragauge.experiment.findings.costs import Costs, JudgeCosts
from ragauge.experiment.findings.failures import FailuresFound
from ragauge.experiment.findings.funnel import FunnelFound
from ragauge.experiment.findings.ir_score import ScoreFound
from ragauge.experiment.findings.lacking import Lacking, Skipped
from ragauge.experiment.findings.latency import Latency
from ragauge.experiment.findings.measure_repeats import Repeats
from ragauge.experiment.findings.monitoring import Days, Window
from ragauge.experiment.findings.people import PeopleFound
from ragauge.experiment.findings.prediction import Predicted
from ragauge.experiment.findings.rankings import RankingsFound
from ragauge.experiment.findings.retrieving import Retrieving
from ragauge.experiment.findings.slices import SlicesFound
from ragauge.experiment.findings.stability import JudgedAgain
from ragauge.experiment.findings.tables import PerQuestion
from ragauge.experiment.findings.verdicts import Estimates

_OWN: tuple[type[JobFinding], ...] = (
    # After the scores, before an LLM is asked.
    Skipped,
    Lacking,
    Window,
    ScoreFound,
    RankingsFound,
    Retrieving,
    FunnelFound,
    # After the answers.
    AnswersMeasured,
    Repeats,
    Costs,
    RecordedAnswers,
    # After the verdicts.
    JudgedAgain,
    PeopleFound,
    PerQuestion,  # the first table is what MLflow shows
    SlicesFound,
    FailuresFound,
    Estimates,
    Days,
    JudgeCosts,
    # After all of that.
    Predicted,
    Latency,
)


def job_findings() -> Iterator[JobFinding]:
    """ragauge's own, then those of installed packages; ConfigError for one that cannot be had."""
    return findings_of(JobFinding, _OWN)


def metrics_of(findings: Iterable[JobFinding]) -> list[str]:
    """The names that findings say their metrics have, beside those that ragauge knows as its own."""
    return list(dict.fromkeys(name for finding in findings for name in finding.metrics))
