"""Shares of right answers by labels of another period (`human_labels_from`), for a job and a sweep's systems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragauge.contract.finding import Cell, Finding, Found, Founds, Grid, JobFinding, Num, Section, Shown, Text
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.metrics import Metric
from ragauge.contract.settings import Settings
from ragauge.plugins.labels.rogan_gladen import judge_by, judged_right, rogan_gladen

METRIC = "correct_share_rogan_gladen"


class ByOtherLabels(JobFinding):
    """The share of right answers by labels of other answers."""

    name = "rogan_gladen"
    metrics = (f"{METRIC}{{,_lo,_hi}}", Metric("judge_{sensitivity,specificity}", group="judge"))

    def check(self, settings: Settings, measures: Sequence[AnswerMeasureInfo]) -> None:
        """DataError for an unusable sheet."""
        judge_by(Path(str(settings.human_labels_from)))

    def compute(self, job: Job, found: Founds) -> Found | None:
        """The metrics; None if nothing is judged."""
        said = judged_right(job.outcomes)
        if said is None:
            return None
        judge = judge_by(Path(str(job.settings.human_labels_from)))
        share = rogan_gladen(said, judge)
        rates = {"judge_sensitivity": judge.sensitivity.value, "judge_specificity": judge.specificity.value}
        metrics = {METRIC: share.value, f"{METRIC}_lo": share.lo, f"{METRIC}_hi": share.hi, **rates}
        return Found((said, judge, share), metrics=metrics)

    def show(self, job: Job, value: Any, found: Founds) -> Shown:
        """One line."""
        said, judge, share = value
        return Shown(
            lines=[
                f"  by {judge.labels} labels of other answers (Rogan-Gladen): right {share.value:.1%} "
                f"(95 % {share.lo:.1%} to {share.hi:.1%}), judged {said.value:.1%}; sensitivity "
                f"{judge.sensitivity.value:.2f}, specificity {judge.specificity.value:.2f}"
            ]
        )


class OfSystemsByOtherLabels(Finding):
    """The systems' shares of right answers by labels of other answers."""

    name = "rogan_gladen"
    after = "people"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """Metrics by system at the sweep's budget; None if no job has the estimate."""
        by_n = {system: of.get(jobs.n_tokens, {}) for system, of in jobs.metrics_by_system().items()}
        known = {system: metrics for system, metrics in by_n.items() if METRIC in metrics}
        return Found(known) if known else None

    def show(self, jobs: Jobs, value: Any, found: Founds) -> Shown:
        """A row per system."""
        rows: list[list[Cell]] = [
            [
                system,
                Num(of.get("correct_share"), "share"),
                Num(of[METRIC], "share", of[f"{METRIC}_lo"], of[f"{METRIC}_hi"]),
                Num(of["judge_sensitivity"], "score"),
                Num(of["judge_specificity"], "score"),
            ]
            for system, of in value.items()
        ]
        said = (
            "Shares of right answers, corrected by labels of other answers (Rogan-Gladen, `human_labels_from`). They "
            "hold if the judge's sensitivity and specificity are the same on these answers as on the labelled ones. "
            "The share of right answers may differ."
        )
        grid = Grid(
            "Right answers by labels of other answers",
            "System | By the judge | Corrected | Sensitivity | Specificity",
            rows,
        )
        return Shown([Section("Right answers by labels of other answers", [Text(said), grid])])
