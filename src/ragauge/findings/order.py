"""The findings of a job in order of computation, and the metrics that they declare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from ragauge.contract.finding import After, Finding, JobFinding
from ragauge.contract.loading import findings_of, points_used
from ragauge.contract.metrics import OF_EVERY_JOB, Metric, by_name, spelled
from ragauge.findings.answers import AnswersMeasured, RecordedAnswers
from ragauge.findings.asked_again import JudgedAgain
from ragauge.findings.clusters import ClustersFound
from ragauge.findings.cost import Costs, JudgeCosts
from ragauge.findings.failures import FailuresFound
from ragauge.findings.funnel import FunnelFound
from ragauge.findings.ir_score import ScoreFound
from ragauge.findings.lacking import Lacking, Skipped
from ragauge.findings.people import PeopleFound
from ragauge.findings.per_question import PerQuestion
from ragauge.findings.predicted import Predicted
from ragauge.findings.probes import JudgeTried
from ragauge.findings.rankings import RankingsFound, Retrieving
from ragauge.findings.slices import SlicesFound
from ragauge.findings.spellings import Respelled
from ragauge.findings.thresholds import Estimates
from ragauge.findings.unread import UnreadTexts

_OF_JOBS: tuple[type[JobFinding], ...] = (
    # After the scores, before an LLM is asked.
    Skipped,
    Lacking,
    UnreadTexts,
    ScoreFound,
    Respelled,
    RankingsFound,
    Retrieving,
    FunnelFound,
    # After the answers.
    AnswersMeasured,
    RecordedAnswers,
    Costs,
    # After the verdicts.
    JudgedAgain,
    JudgeTried,
    PeopleFound,
    PerQuestion,  # the first table is what MLflow shows
    SlicesFound,
    FailuresFound,
    Estimates,
    JudgeCosts,
    # After all of that.
    ClustersFound,
    Predicted,
)


def job_findings(config: Mapping[str, Any] | None = None) -> list[JobFinding]:
    """A job's findings by phase: ragauge's own, then those of packages; ConfigError for an unloadable one.

    config: that of the job, in plain values, which decides over those in `group_on_use`; None: all of them.
    Costs come last, so that they count what findings ask an LLM for.
    """
    needs = get_args(After)
    found = findings_of(JobFinding, _OF_JOBS, points_used(JobFinding.group_on_use, config))
    return sorted(found, key=lambda one: (needs.index(one.after), isinstance(one, Costs | JudgeCosts)))


def declared(findings: Iterable[JobFinding | Finding]) -> dict[str, Metric]:
    """The metrics that findings declare, by their names (some with a *)."""
    return by_name(metric for finding in findings for metric in finding.metrics)


def metrics_of_jobs() -> list[str]:
    """The names (some with a *) of metrics that a job may log, except those of its components."""
    return spelled([*OF_EVERY_JOB, *(metric for finding in job_findings() for metric in finding.metrics)])


def metrics_of_packages(findings: Iterable[JobFinding]) -> list[str]:
    """The metric names of other packages' findings."""
    theirs = [one for one in findings if not type(one).__module__.startswith("ragauge.")]
    return spelled(metric for finding in theirs for metric in finding.metrics)
