"""The share of needed evidence in the context over the budget N, and the score of unrelated text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragauge.contract.finding import (
    Cell,
    Col,
    Finding,
    Fold,
    Found,
    Founds,
    Grid,
    JobFinding,
    Num,
    Picture,
    Section,
    Shown,
    Text,
)
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.metrics import IR_SCORE, Metric
from ragauge.findings import study
from ragauge.findings.tables import number
from ragauge.measures.floor import is_corrected, short_of_text
from ragauge.show.figures import ir_score_by_n
from ragauge.show.formats import score
from ragauge.track import views


class ScoreFound(JobFinding):
    """The IR score, the score of unrelated text, and both over the budgets up to the job's."""

    name = "ir_score"
    after = "scores"
    metrics = (
        IR_SCORE,
        Metric("ir_score_floor", group=""),
        Metric("ir_score_topics", group="size"),
        Metric("{ir_score,ir_score_floor}_at_n{,/*}", chart=True),
    )

    def compute(self, job: Job, found: Founds) -> Found:
        """A sentence if unrelated text was short; keeps the charts for the sweep."""
        n, means, scores = job.n_tokens, job.frame("floor_means"), job.frame("scores")
        both = (curve_of(scores), floor_of(job.pipeline.components.measure, means))
        steps = {
            name: {at: value for at, value in curve.items() if at <= n}
            for name, curve in zip(CURVES, both, strict=True)
        }
        return Found(
            short_of_text(means, n, job.frame("scored_evidence")["qid"].nunique()),
            metrics={
                "ir_score_topics": int((scores["n_tokens"] == n).sum()),
                **{name: c[n] for name, c in zip(("ir_score", "ir_score_floor"), both, strict=True) if n in c},
            },
            steps={**steps, views.TOKENS: {at: at for at in steps[CURVES[0]]}},
            record=steps,
        )

    def show(self, job: Job, value: str | None, found: Founds) -> Shown:
        """The sentence."""
        return Shown(lines=[] if value is None else [value])


CURVES = ("ir_score_at_n", "ir_score_floor_at_n")  # step charts over n_tokens, and entries of a job's record
Curves = dict[str, dict[int, float]]


@dataclass(frozen=True)
class ScoreCurves:
    """{system: {n_tokens: mean IR score}}, and the same for unrelated text."""

    scores: Curves
    floors: Curves


DEFINED = (
    f"The {IR_SCORE.label} is the share of the needed evidence that stands in the first N tokens of what was "
    "retrieved, as a mean over topics."
)


class ScoreByN(Finding):
    """The share of the evidence in the first N tokens."""

    name = "ir_score"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`ScoreCurves`; None where no job has an IR score."""
        curves = ScoreCurves(score_curves(jobs), floor_curves(jobs))
        if not any(curves.scores.values()):
            return None
        steps = {f"ir_score_at_n/{metric_part(system)}": curve for system, curve in curves.scores.items()}
        steps |= {f"ir_score_floor_at_n/{metric_part(name)}": curve for name, curve in curves.floors.items()}
        return Found(curves, steps=steps)

    def show(self, jobs: Jobs, value: ScoreCurves, found: Founds) -> Shown:
        """The curves as a figure, with their values in a fold."""
        over_n = found.get("budgets")
        published = study.IR_SCORE if jobs.records[0].choices.get("dataset") == "hotpotqa" else None
        bands = None if over_n is None else over_n.band_of("ir_score")
        figure = ir_score_by_n(value.scores, published, value.floors, bands)
        blocks = [
            *(Text(_floor(name, curve, len(value.floors))) for name, curve in value.floors.items() if curve),
            Picture(
                "ir_score_by_n",
                "Lines of the IR score over the budget N, one per system; the values are in the table below",
                f"{IR_SCORE.label} against N. Where lines lie on each other, the thinner ones are drawn on top.",
            ),
            Fold("The values, with intervals where a job was run", [_values(jobs, value)]),
        ]
        return Shown([Section(f"{IR_SCORE.label} against N", blocks)], figures={"ir_score_by_n": figure})


def _floor(name: str, curve: Mapping[int, float], floors: int) -> str:
    which = f" ({name})" if floors > 1 else ""
    return (
        f"It is not 0 on text that has nothing to do with the question: random passages of the same corpus{which} "
        f"score {score(curve[max(curve)])} at N = {max(curve)}. The distance of a system from this floor is due to its "
        "retrieval."
    )


def _values(jobs: Jobs, value: ScoreCurves) -> Grid:
    grid = sorted({n for curve in value.scores.values() for n in curve})
    of_jobs = jobs.metrics_by_system()
    rows: list[list[Cell]] = []
    for system, curve in value.scores.items():
        known = of_jobs[system]
        cells = (number(known[n], "ir_score") if "ir_score" in known.get(n, {}) else Num(curve.get(n)) for n in grid)
        rows.append([system, *cells])
    rows += [[name, *(Num(curve.get(n)) for n in grid)] for name, curve in value.floors.items()]
    return Grid(f"{IR_SCORE.label} by N", ["System", *(Col(str(n)) for n in grid)], rows)


def metric_part(system: str) -> str:
    """A system's name in characters valid in MLflow's metrics."""
    return re.sub(r"[^\w.\- /]+", "_", system)


def score_curves(jobs: Jobs) -> Curves:
    """IR score against the budget by system, as far as the largest budget of its jobs."""
    curves: Curves = {}
    for record, system in zip(jobs.records, jobs.systems, strict=True):
        curves[system] = curves.get(system, {}) | record.ir_score_at_n
    return curves


def floor_curves(jobs: Jobs) -> Curves:
    """Floor of the IR score by budget, {"unrelated text": {n_tokens: floor}}; {} if unknown.

    Where jobs have different floors (another chunker, say), each with the first system that it is of.
    """
    curves: list[tuple[str, dict[int, float]]] = []
    for record, system in zip(jobs.records, jobs.systems, strict=True):
        curve = dict(record.ir_score_floor_at_n)
        if not curve:
            continue
        for _, known in curves:
            if all(known.get(n, value) == value for n, value in curve.items()):
                known.update(curve)
                break
        else:
            curves.append((system, curve))
    alone = len(curves) == 1
    return {"unrelated text" if alone else f"unrelated text, {system}": curve for system, curve in curves}


def curve_of(scores: pd.DataFrame) -> dict[int, float]:
    """The mean IR score over topics at every budget of the grid: {n_tokens: score}."""
    means = scores.groupby("n_tokens")["value"].mean()
    return dict(zip(means.index.tolist(), means.tolist(), strict=True))


def floor_of(measure: Any, means: pd.DataFrame) -> dict[int, float]:
    """The measure's value for unrelated text, averaged over topics by `floor_means`: {n_tokens: score}.

    For a corrected measure it is the rest of that after the correction.
    """
    values = means["corrected" if is_corrected(measure) else "value"]
    return dict(zip(means["n_tokens"].tolist(), values.tolist(), strict=True))
