"""Values of answers by the measures of `answers`: a job's, and a section of the report for each measure's section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import NO_CLAIMS, besides_rankings, column_label, infos_of
from ragauge.contract.finding import (
    Block,
    Cell,
    Col,
    Finding,
    Fold,
    Found,
    Founds,
    Grid,
    JobFinding,
    Kind,
    Num,
    Section,
    Shown,
    Text,
)
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.measures import AnswerMeasure, AnswerMeasureInfo
from ragauge.contract.stages import Stages
from ragauge.estimate.sampled_means import answered
from ragauge.findings.cost import RECORDED
from ragauge.findings.leaderboard import measured
from ragauge.findings.tables import by_budget, number


class AnswersMeasured(JobFinding):
    """Shares of answers without claims, and measures over all answers together."""

    name = "answers"
    after = "answers"

    def compute(self, job: Job, found: Founds) -> Found:
        """Warnings for means beyond their limits; makes the answers and their values."""
        job.frame("answers")  # before measures ask about them
        told = warnings_of(job.frame("answer_values"), job.pipeline.components.answers)
        return Found(told, metrics={**without_claims(job.pipeline), **of_all_answers(job.pipeline)})

    def show(self, job: Job, value: list[str], found: Founds) -> Shown:
        """The sentences, as warnings."""
        return Shown(notes=value)


class RecordedAnswers(JobFinding):
    """The cost of recorded answers, from their file."""

    name = "recorded_answers"
    after = "answers"
    metrics = ("recorded_{cost_usd,prompt_tokens,completion_tokens,seconds_p50,seconds_p95}",)

    def compute(self, job: Job, found: Founds) -> Found | None:
        """A sentence if n_tokens truncates the contexts; None unless answers are recorded."""
        pipeline = job.pipeline
        if pipeline.components.llm.kind != RECORDED:
            return None
        laid_out = (job.frame(name) for name in ("run", "layouts", "prefixes"))
        cut = cut_after_answers(job.n_tokens, *laid_out)
        return Found(cut, metrics=recorded_costs(pipeline.answers))

    def show(self, job: Job, value: str | None, found: Founds) -> Shown:
        """The sentence, as a warning."""
        return Shown(notes=[] if value is None else [value])


def cut_after_answers(n_tokens: int, run: pd.DataFrame, layouts: pd.DataFrame, prefixes: pd.DataFrame) -> str | None:
    """A sentence if n_tokens truncates the contexts of recorded answers; else None.

    The frames are those of these names; run is what is laid out.
    """
    here = prefixes[prefixes["n_tokens"] == n_tokens].merge(layouts[["qid", "layout", "text"]])
    left_out = here["n_chunks"] < here["qid"].map(run["qid"].value_counts()).fillna(0)
    texts = zip(here["text"], here["end"], left_out, strict=True)
    cut = sum(bool(out or text[end:].strip()) for text, end, out in texts)
    if not cut:
        return None
    return (
        f"n_tokens={n_tokens} cuts the contexts of {cut:,} of {len(here):,} topics, whose answers were "
        "given with all of them: scores are of less than the LLM saw"
    )


def recorded_costs(answers: pd.DataFrame) -> dict[str, float]:
    """The cost of recorded answers from their file, recorded_<what>, without missing values.

    Sums of prompt and completion tokens and of US dollars, median and 95th percentile of seconds.
    """
    sums = {name: float(answers[name].sum()) for name in ("prompt_tokens", "completion_tokens", "cost_usd")}
    seconds = answers.loc[answers["answer"].notna(), "seconds"]
    if seconds.gt(0).any():
        sums |= {f"seconds_{end}": float(seconds.quantile(q)) for end, q in (("p50", 0.5), ("p95", 0.95))}
    return {f"recorded_{name}": value for name, value in sums.items() if value}


def without_claims(pipeline: Stages) -> dict[str, float]:
    """<measure>_no_claims: the share of topics without a claim in the answer or reference answer.

    It covers every measure that may lack claims. It is a part of <measure>_missing; the rest are failures, and what
    else a topic lacks.
    """
    values, n = pipeline.frame("answer_values"), len(pipeline.frame("topics"))
    infos = [
        info
        for stage in pipeline.stages
        if isinstance(stage.component, AnswerMeasure) and stage.component.may_lack_claims
        for info in stage.infos
    ]
    counts = values.loc[values["status"].eq(NO_CLAIMS), "measure"].value_counts()
    return {f"{info.name}_no_claims": float(counts.get(info.name, 0)) / n for info in infos}


def of_all_answers(pipeline: Stages) -> dict[str, float]:
    """Answer measures over all answers together, such as corpus BLEU."""
    found: dict[str, float] = {}
    for measure in pipeline.components.answers.values():
        found |= measure.of_job(pipeline.frame("topics"), pipeline.answers)
    return found


def warnings_of(values: pd.DataFrame, measures: Mapping[str, Any]) -> list[str]:
    """Warnings of answer measures for means beyond their limits."""
    means = values.groupby("measure")["value"].mean()
    told = [info.warning(float(means.get(info.name, np.nan))) for one in measures.values() for info in infos_of(one)]
    return [one for one in told if one]


class Answers(Finding):
    """The values of answers by the measures of `answers`."""

    name = "answers"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """{section: measures}, or None without any. Values and metrics are the leaderboard's."""
        by_section: dict[str, list[AnswerMeasureInfo]] = {}
        for info in besides_rankings(jobs.answer_measures):
            by_section.setdefault(info.section, []).append(info)
        return Found(by_section) if by_section else None

    def show(self, jobs: Jobs, value: dict[str, list[AnswerMeasureInfo]], found: Founds) -> Shown:
        """Means at the sweep's budget, and in a fold at every budget."""
        board = found["leaderboard"].frame.to_dict("records")
        return Shown([Section(name, _blocks(jobs, name, infos, board)) for name, infos in value.items()])


def _topics(jobs: Jobs, infos: list[AnswerMeasureInfo]) -> str:
    """A sentence on the topics of the means, and on their estimation from a sample of answers."""
    if all(answered(rows, infos[0].name) is None for _, rows in jobs.at_n.groupby("system")):
        return "the topics that have a value"
    return (
        "all topics, estimated from those that were answered and from what a regression on the IR score says of the "
        "others (prediction-powered inference)"
    )


def _blocks(jobs: Jobs, name: str, infos: list[AnswerMeasureInfo], board: list[dict[Any, Any]]) -> list[Block]:
    how = " ".join(
        f"{info.label}: {info.direction} is better{', in per cent' if info.unit == 'share' else ''}." for info in infos
    )
    columns: list[Col | str] = ["System"]
    for info in infos:
        columns += [Col(column_label(info), f"{info.direction} is better"), "No / value"]
    rows: list[list[Cell]] = []
    for row in board:
        cells: list[Cell] = [str(row["system"])]
        for info in infos:
            cells += [measured(row, info), Num(row[f"{info.name}_missing"], "share")]
        rows.append(cells)
    warnings = [told for row in board for info in infos if (told := info.warning(row[info.name], str(row["system"])))]

    def values(info: AnswerMeasureInfo) -> Grid:
        kind: Kind = "share" if info.unit == "share" else "score"

        def cell(metrics: Any) -> Num | None:
            return number(metrics, info.name, kind) if info.name in metrics else None

        return by_budget(jobs, f"{info.label} by N", cell, info.label)

    return [
        Text(f"Means over {_topics(jobs, infos)}, at N = {jobs.n_tokens} tokens. {how}"),
        Grid(name, columns, rows),
        *(Text(f"{warning}.", "note", "warning", "bad") for warning in warnings),
        Fold("By N, with intervals", [values(info) for info in infos]),
    ]
