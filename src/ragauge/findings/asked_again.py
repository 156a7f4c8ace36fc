"""The judge asked again: the stability of its labels, and the cost of the repetition."""

from __future__ import annotations

from typing import Any, Literal

import pandas as pd

from ragauge.contract.answering import BatchJudge
from ragauge.contract.finding import Cell, Finding, Found, Founds, Grid, JobFinding, Num, Section, Shown, Text
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.metrics import Metric
from ragauge.contract.outcomes import CLUSTER
from ragauge.contract.stages import Stages
from ragauge.estimate import judge_stability, summary
from ragauge.findings.cost import costs_of_replies
from ragauge.findings.tables import number
from ragauge.show.formats import whole

_KEYS = ["qid", "candidate"]
_REPEATED = (
    "judge_repeat_pairs",
    "judge_repeat_topics",
    "judge_repeat_kappa",
    "judge_reorder_kappa",
    *(
        f"judge_{name}{end}"
        for name in ("repeat_agreement", "reorder_agreement", "position_effect")
        for end in ("", "_lo", "_hi")
    ),
)


def _repeated(name: str, label: str, unit: Literal["share", "signed"] = "share") -> Metric:
    return Metric(f"{name}{{,_lo,_hi}}", label=label, unit=unit, group="judge", listed="compare")


class JudgedAgain(JobFinding):
    """The stability of the job's judge."""

    name = "judged_again"
    metrics = (
        Metric("judge_repeat_{pairs,topics}", group="judge"),
        _repeated("judge_repeat_agreement", "judge asked again, equal"),
        _repeated("judge_reorder_agreement", "judge, other order, equal"),
        _repeated("judge_position_effect", "judge's position effect", "signed"),
        Metric("judge_{repeat,reorder}_kappa{,_lo,_hi}", group="judge"),
    )

    def compute(self, job: Job, found: Founds) -> Found | None:
        """The cost of asking again, as metrics of the judge; None without repetition."""
        stability, again = job.judged_again or _of_one_job(job)
        costs = {} if again is None or again.empty else costs_of_replies(again, "judge_")
        return Found(costs, metrics=stability) if stability or costs else None


def judged_again(
    pipeline: Stages, candidates: pd.DataFrame, verdicts: pd.DataFrame
) -> tuple[dict[str, float], pd.DataFrame]:
    """The metrics of `judge_stability` for the pipeline's judge, and their verdicts.

    `candidates` [qid, candidate, answer] are what `verdicts` [qid, candidate, label] are about. {} and no
    rows where the judge is not asked again.
    """
    judge = pipeline.components.judge
    assert isinstance(judge, BatchJudge)  # pyrefly: ignore[unsafe-overlap]
    again = judge.judge_again(pipeline.frame("topics"), pipeline.frame("evidence"), candidates, pipeline.tools)
    if again.empty:
        return {}, again
    labels = again.pivot(index=_KEYS, columns="order", values="label").reset_index()
    labels = labels.merge(verdicts[[*_KEYS, "label"]].rename(columns={"label": "first"}), on=_KEYS)
    if CLUSTER in pipeline.clusters:
        labels[CLUSTER] = labels["qid"].map(pipeline.clusters[CLUSTER])
    return summary.stability(judge_stability(labels)), again


def _of_one_job(job: Job) -> tuple[dict[str, float], pd.DataFrame | None]:
    """The same for a judge with one answer per request; others are asked again with all jobs of a sweep."""
    pipeline = job.pipeline
    judge = pipeline.components.judge
    if not isinstance(judge, BatchJudge) or judge.mode == "batch":  # pyrefly: ignore[unsafe-overlap]
        return {}, None
    shown = pipeline.to_judge(pipeline.answers)
    one = str(job.n_tokens)
    candidates = shown[["qid", "answer"]].assign(candidate=one)
    verdicts = pipeline.verdicts[["qid", "label"]].assign(candidate=one)
    return judged_again(pipeline, candidates, verdicts)


class AskedAgain(Finding):
    """The stability of the judge's labels, as measured by the jobs."""

    name = "asked_again"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """[(systems, {metric: value})], a row per set of jobs with equal values; None without repetition."""
        rows: dict[tuple[float | None, ...], tuple[list[str], dict[str, Any]]] = {}
        for system, record in zip(jobs.systems, jobs.records, strict=True):
            known = {name: record.metrics.get(name) for name in _REPEATED}
            if known["judge_repeat_pairs"] is not None:
                names, _ = rows.setdefault(tuple(known.values()), ([], known))
                names.append(f"{system}, N = {record.n_tokens}")
        return Found(list(rows.values())) if rows else None

    def show(self, jobs: Jobs, value: list[tuple[list[str], dict[str, Any]]], found: Founds) -> Shown:
        """Shares of equal labels in the same and in another order."""
        columns = (
            "Jobs | Answers / of topics | Same order / equal labels | κ | Other order / equal labels | κ | "
            "Position effect / points"
        )
        rows: list[list[Cell]] = []
        for names, row in value:
            whole_sweep = len(names) == len(jobs.records) > 1
            rows.append(
                [
                    f"all {len(names)}" if whole_sweep else "; ".join(names),
                    f"{whole(row['judge_repeat_pairs'])} of {whole(row['judge_repeat_topics'])}",
                    number(row, "judge_repeat_agreement", "share"),
                    Num(row["judge_repeat_kappa"]),
                    number(row, "judge_reorder_agreement", "share"),
                    Num(row["judge_reorder_kappa"]),
                    number(row, "judge_position_effect", "points"),
                ]
            )
        about = Text(
            "Topics were judged a second time. Where the same request is made once more, the share of labels that "
            "change is noise. In another order of the candidates it is noise and position. "
            "The position effect is the difference. A judge that sees one answer a request has no order, so no "
            "position effect."
        )
        return Shown([Section("The judge asked again", [about, Grid("The judge asked again", columns, rows)])])
