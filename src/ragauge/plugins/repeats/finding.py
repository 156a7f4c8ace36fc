"""The findings on repeats: of a job with `llm.repeat` or `judge.per_answer`, and of the systems of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from ragauge.contract.finding import Cell, Finding, Fold, Found, Founds, Grid, JobFinding, Num, Section, Shown, Text
from ragauge.contract.metrics import Metric
from ragauge.contract.stages import Stages
from ragauge.contract.usage import usage_of
from ragauge.findings.tables import number

if TYPE_CHECKING:
    from ragauge.contract.jobs import Job, Jobs
    from ragauge.plugins.repeats.stability import Stability

_ROW = "topics, answers and judge vary"
_PARTS = ("topic", "answer", "judge")


class RepeatsFound(JobFinding):
    """The variance between topics, answers and verdicts of a job, and the stability of its answers."""

    name = "answer_repeats"
    after = "verdicts"
    metrics = (
        Metric(
            "repeat_variance_{topic,answer,judge}{,_lo,_hi}",
            "variance of one verdict of right or not, between topics, between answers to a topic, and between verdicts "
            "on an answer; below 0: none is seen",
            _ROW,
        ),
        Metric("repeat_error_{topic,answer,judge}", "share of each in the squared standard error of `correct_share`"),
        Metric(
            "repeat_{agreement,judge_agreement}{,_lo,_hi}",
            "share of pairs of answers to a topic, and of verdicts on an answer, in the same class, in [0, 1]",
            _ROW,
        ),
        Metric(
            "repeat_right_{once,always}{,_lo,_hi}",
            "share of topics of whose answers one at least, or all, are right, in [0, 1]",
            _ROW,
        ),
        Metric("repeat_same_answers{,_lo,_hi}", "share of topics whose answers are all equal, in [0, 1]", _ROW),
        Metric(
            "repeat_foresight{,_lo,_hi}",
            "Spearman's correlation of the IR score and the variance of a topic's answers being right, in [-1, 1]",
            "rank correlation of a score and the variance of being right",
        ),
        Metric("repeat_{topics,answers,verdicts}", "topics, answers to each, and verdicts on each answer"),
        Metric("repeat_price_{answer,verdict}", "US dollars of one answer, and of one verdict"),
    )

    def compute(self, job: Job, found: Founds) -> Found | None:
        """`Stability`; None without repeats or verdicts."""
        if not job.pipeline.several:
            return None
        from ragauge.estimate.outcomes import with_classes
        from ragauge.plugins.repeats.stability import stability

        repeated = job.pipeline.repeated
        measures = [info.name for info in job.answer_measures if info.name in repeated]
        value = stability(repeated, with_classes(job.outcomes), measures, job.n_boot, job.seed)
        tables = {"repeats": repeated}
        if value is None:
            return Found(tables=tables)
        return Found(
            value, {**value.metrics(), **_prices(job.pipeline)}, tables={**tables, "repeats_variance": value.table()}
        )

    def show(self, job: Job, value: Stability | None, found: Founds) -> Shown:
        """Right once and always, the variance components, and a line if all answers are equal."""
        if value is None:
            return Shown()
        lines = []
        if value.same_answers is not None and value.right_once is not None and value.right_always is not None:
            if value.same_answers.value == 1:
                lines.append(f"llm.repeat: the {value.r} answers to each topic are equal, for all {value.n:,} topics")
            lines.append(
                f"{value.r} answers to each topic: right at least once {value.right_once.value:.0%}, always "
                f"{value.right_always.value:.0%}"
            )
        of_error = zip(("topics", "answers", "judge"), value.of["correct_share"].of_error, strict=True)
        parts = ", ".join(f"{name} {share:.0%}" for name, share in of_error if share == share)
        return Shown(lines=[*lines, *([f"variance of the share of right answers: {parts}"] if parts else [])])


def _prices(pipeline: Stages) -> dict[str, float]:
    """US dollars of an answer and of a verdict, by the job's own tokens and the models' prices."""
    found = {}
    of = pipeline.components
    replies = {"answer": (pipeline.all_answers, of.llm), "verdict": (pipeline.all_verdicts, of.judge)}
    for name, (rows, model) in replies.items():
        once = rows.drop_duplicates("request") if "request" in rows else rows
        found[f"repeat_price_{name}"] = float(model.cost(usage_of(once))) / max(len(once), 1)
    return found


class RepeatsOfSystems(Finding):
    """The stability of each system's answers."""

    name = "repeats_of_systems"
    after = "classes"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """The jobs' metrics, a row per system at the sweep's budget; None if none has repeats."""
        rows = [
            {"system": system, **{name: value for name, value in record.metrics.items() if _is_own(name)}}
            for system, record in zip(jobs.systems, jobs.records, strict=True)
            if record.n_tokens == jobs.n_tokens and "repeat_answers" in record.metrics
        ]
        if not rows:
            return None
        table = pd.DataFrame(rows)
        return Found(table, tables={"repeats": table})

    def show(self, jobs: Jobs, value: pd.DataFrame, found: Founds) -> Shown:
        """Stability of the answers, and collapsed variance components."""
        rows = value.to_dict("records")
        about = Text(
            "Every topic was answered, or every answer judged, several times; shares are means over these, and the "
            "topic is the unit of their intervals. *Equal class*: pairs of answers to a topic whose verdicts are the "
            "same class. *Foresight*: the rank correlation of a topic's IR score and the variance of its answers being "
            "right. Below 0, answers to topics with a high score are more stable."
        )
        heads = "System | Answers | Right once | Right always | Equal class | Equal verdicts | Foresight"
        names = ("right_once", "right_always", "agreement", "judge_agreement")
        shown: list[list[Cell]] = [
            [
                str(row["system"]),
                Num(row["repeat_answers"], "whole"),
                *(number(row, f"repeat_{name}", "share") for name in names),
                number(row, "repeat_foresight", "signed"),
            ]
            for row in rows
        ]
        parts: list[list[Cell]] = [
            [
                str(row["system"]),
                *(number(row, f"repeat_variance_{part}", "signed") for part in _PARTS),
                *(Num(row.get(f"repeat_error_{part}"), "share") for part in _PARTS),
            ]
            for row in rows
        ]
        of_variance = Text(
            "The variance of a verdict of right or not, between topics, answers to a topic, and verdicts on an answer. "
            "Then the share of each in the squared standard error of the share of right answers. "
            "A variance below 0 says that none of its kind is seen. With one verdict on each answer, the judge's error "
            "is a part of the answers'.",
            "small",
        )
        columns = "System | Topics | Answers | Judge | Of the error: topics | answers | judge"
        fold = Fold("The variance by topics, answers and judge", [of_variance, Grid("Variance", columns, parts)])
        return Shown([Section("Repeats", [about, Grid("Repeats", heads, shown), fold])])


def _is_own(name: str) -> bool:
    return name.startswith("repeat_")
