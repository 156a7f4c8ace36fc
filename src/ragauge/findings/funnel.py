"""The funnel: one measure of the same evidence at every step from corpus to context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge.contract.finding import (
    Block,
    Col,
    Finding,
    Found,
    Founds,
    Grid,
    Heading,
    JobFinding,
    Num,
    Picture,
    Section,
    Shown,
    Text,
)
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.metrics import Metric
from ragauge.contract.outcomes import CLUSTER
from ragauge.contract.stages import Stages
from ragauge.diagnose.funnel import CLASSES, answers_by_evidence, funnel, funnel_metrics, funnel_of_metrics
from ragauge.findings.tables import number, of_each, table, together
from ragauge.measures.floor import is_corrected
from ragauge.show.drawing import WIDTH, legend, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KEYS = ["qid", "part"]


class FunnelFound(JobFinding):
    """The metrics of the funnel."""

    name = "funnel"
    after = "scores"
    metrics = (
        Metric(
            "funnel_{corpus,best_chunk,candidates,reranked,expanded,compressed,context}{,_change}{,_lo,_hi}",
            group="funnel",
        ),
    )

    def compute(self, job: Job, found: Founds) -> Found:
        """The frame of `evidence_parts`; None without a funnel."""
        parts, clusters = evidence_parts(job.pipeline), job.pipeline.clusters.get(CLUSTER)
        return Found(parts, metrics={} if parts is None else funnel_metrics(funnel(parts, clusters=clusters)))

    def show(self, job: Job, value: pd.DataFrame | None, found: Founds) -> Shown:
        """The reason for a missing funnel."""
        if value is not None:
            return Shown()
        measure = job.pipeline.components.measure.name
        return Shown(
            lines=[f"measure={measure} uses a model, so there is no funnel: every step would have to be asked"]
        )


def evidence_parts(pipeline: Stages) -> pd.DataFrame | None:
    """A row per evidence part with a column per step of the job's funnel; None without a funnel.

    `unreranked` is what the order before reranking would have within the budget. The values are those of the
    measure without its correction, which hangs on the budget.
    """
    names = {stage.name for stage in pipeline.stages}
    if "funnel" not in names:
        return None
    trail = pipeline.frame("evidence_trail")
    corrected = is_corrected(pipeline.components.measure)
    within = pipeline.frame_for("corrected", "part_scores") if corrected else pipeline.frame("part_scores")
    found = _with_step(trail, within, "context", pipeline.n_tokens)
    if "funnel_unreranked" in names:
        found = _with_step(found, pipeline.frame("unreranked_scores"), "unreranked", pipeline.n_tokens)
    return found


def _with_step(trail: pd.DataFrame, scores: pd.DataFrame, step: str, n_tokens: int) -> pd.DataFrame:
    at_n = scores.loc[scores["n_tokens"] == n_tokens, [*_KEYS, "value"]].rename(columns={"value": step})
    return trail.merge(at_n, on=_KEYS, how="left", validate="one_to_one")


_MAX_SYSTEMS = 4  # funnels drawn
_KEPT, _LOST, _GAINED = "#0072B2", "#D55E00", "#009E73"


@dataclass(frozen=True)
class Lost:
    """steps: that of `funnel_of_metrics`; answers: that of `answers_by_evidence`; each with a column system.

    without: the systems that have no funnel.
    """

    steps: pd.DataFrame
    answers: pd.DataFrame
    without: Sequence[str]


class Funnel(Finding):
    """The evidence that each step keeps, loses and adds."""

    name = "funnel"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`Lost`; None without a job that followed its evidence."""
        steps, without = [], []
        for record, system in zip(jobs.records, jobs.systems, strict=True):
            if record.n_tokens == jobs.n_tokens:
                table = funnel_of_metrics(record.metrics)
                without += [] if len(table) else [system]
                steps += [table.assign(system=system)] if len(table) else []
        if not steps:
            return None
        answers = of_each(jobs, answers_by_evidence)
        value = Lost(together(steps), answers, without)
        known = {"funnel": value.steps, "answers_by_evidence": value.answers}
        return Found(value, tables={name: table for name, table in known.items() if len(table)})

    def show(self, jobs: Jobs, value: Lost, found: Founds) -> Shown:
        """Waterfalls, a table of the steps, and answers by evidence."""
        systems = found["leaderboard"].systems
        blocks: list[Block] = [
            Text(
                f"One measure of the same evidence at every step, at N = {jobs.n_tokens} tokens. The steps are: whole "
                "documents of the corpus; the one best chunk for each part of the evidence (of its own document, or "
                "of those most like it where that lacks it); all hits joined; and the output of each further part of "
                "the system. No LLM is asked. A step may gain, where neighbouring chunks complete a sentence that the "
                "chunker cut."
            ),
            Picture(
                "funnel",
                "Waterfall of the evidence by step for the first systems of the leaderboard; the numbers are in the "
                "table below",
                "The evidence that each step keeps, loses and adds. Whiskers: 95 % intervals of the change, over "
                "topics.",
            ),
            _steps(value.steps, systems),
        ]
        if len(value.answers):
            blocks += [
                Heading("Answers by evidence"),
                Text(
                    "A part of the evidence counts as there where the measure is at least 0.9. Shares are of the "
                    "topics of the row."
                ),
                _answers(value.answers, systems),
            ]
        figure = funnel_figure(value.steps, systems)
        drawn = {} if figure is None else {"funnel": figure}
        return Shown([Section("Where evidence is lost", blocks)], figures=drawn)


def _steps(steps: pd.DataFrame, systems: Sequence[str]) -> Grid:
    return table(
        "Evidence by step",
        "System | <Step | Evidence there | Change",
        steps,
        lambda row: [str(row["label"]), number(row, "value"), number(row, "change", "signed")],
        systems,
    )


def _answers(answers: pd.DataFrame, systems: Sequence[str]) -> Grid:
    wide = [
        {"system": system, "evidence": evidence, "n": of["n"].iloc[0], "of": of.set_index("answer").to_dict("index")}
        for (system, evidence), of in answers.groupby(["system", "evidence"], sort=False)
    ]
    return table(
        "Answers by the evidence in the context",
        ["System", "<Evidence in the context", "Topics", *(Col(name.capitalize()) for name in CLASSES)],
        pd.DataFrame(wide),
        lambda row: [
            str(row["evidence"]),
            Num(row["n"], "whole"),
            *(number(row["of"][c], "share", "share") for c in CLASSES),
        ],
        systems,
    )


def funnel_figure(funnels: pd.DataFrame, systems: Sequence[str]) -> Figure | None:
    """Waterfalls, stacked vertically: the evidence that each step keeps, loses or adds.

    `funnels`: the steps of `Lost`. The first four systems; None without one. Whiskers are intervals of the changes.
    """
    from matplotlib.figure import Figure

    shown = [name for name in systems if (funnels["system"] == name).any()][:_MAX_SYSTEMS]
    if not shown:
        return None
    tables = [funnels[funnels["system"] == name].reset_index(drop=True) for name in shown]
    heights = [0.32 * len(table) + 0.45 for table in tables]
    figure = Figure(figsize=(WIDTH, sum(heights) + 0.9), layout="constrained")
    panels: Any = figure.subplots(len(tables), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    for axes, name, steps in zip(panels, shown, tables, strict=True):
        _waterfall(axes, steps)
        axes.set_title(plain(name), fontsize=10, loc="left")
    for colour, label in ((_KEPT, "kept"), (_LOST, "lost"), (_GAINED, "gained")):
        panels[0].plot([], [], "s", ms=8, color=colour, label=label)
    panels[-1].set_xlabel("share of the evidence, mean over topics")
    legend(figure, panels[0], 3)
    return figure


def _waterfall(axes: Any, table: pd.DataFrame) -> None:
    """Draws one funnel: a bar per step, followed by its change."""
    at = np.arange(len(table))
    value, change = table["value"].to_numpy(dtype=float), table["change"].fillna(0).to_numpy(dtype=float)
    before = value - change
    axes.barh(at, np.minimum(value, before), color=_KEPT, height=0.66)
    axes.barh(at, np.maximum(-change, 0), left=value, color=_LOST, height=0.66)
    axes.barh(at, np.maximum(change, 0), left=before, color=_GAINED, height=0.66)
    known = table["change_lo"].notna().to_numpy()
    lo, hi = (before + table[end].to_numpy(dtype=float) for end in ("change_lo", "change_hi"))
    axes.hlines(at[known], lo[known], hi[known], color="black", lw=1)
    for row in np.flatnonzero(known).tolist():
        text = f"{change[row]:+.3f}".replace("-", "−")
        right = max(value[row], before[row], hi[row])
        axes.text(right + 0.015, row, text, va="center", fontsize=8)
    axes.text(value[0] + 0.015, 0, f"{value[0]:.3f}", va="center", fontsize=8)
    axes.set_yticks(at, [str(label) for label in table["label"]])
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.16)
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25)
