"""How stable a judge's labels are: some topics judged again, and what their labels say."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragauge.contract.finding import Found, Founds, JobFinding
from ragauge.contract.jobs import Job
from ragauge.contract.protocols import BatchJudge, judges_together
from ragauge.estimate import judge_stability, summary
from ragauge.findings.cost import costs_of_replies

_KEYS = ["qid", "candidate"]


class JudgedAgain(JobFinding):
    """How stable the judge of the job is."""

    name = "judged_again"

    def compute(self, job: Job, found: Founds) -> Found | None:
        """What asking again cost, as metrics of the judge; None where it is not asked again."""
        stability, again = job.judged_again or _of_one_job(job)
        costs = {} if again is None or again.empty else costs_of_replies(again, "judge_")
        return Found(costs, metrics=stability) if stability or costs else None


def judged_again(
    pipeline: Any, candidates: pd.DataFrame, verdicts: pd.DataFrame, n_boot: int, seed: int
) -> tuple[dict[str, float], pd.DataFrame]:
    """The metrics of `judge_stability` for the pipeline's judge, and the verdicts that it takes.

    `candidates` [qid, candidate, answer] are what `verdicts` [qid, candidate, label] are about. {} and no
    rows where the judge is not asked again.
    """
    judge = pipeline.components.judge
    assert isinstance(judge, BatchJudge)
    again = judge.judge_again(pipeline.frame("topics"), pipeline.frame("evidence"), candidates, pipeline.tools)
    if again.empty:
        return {}, again
    labels = again.pivot(index=_KEYS, columns="order", values="label").reset_index()
    labels = labels.merge(verdicts[[*_KEYS, "label"]].rename(columns={"label": "first"}), on=_KEYS)
    return summary.stability(judge_stability(labels, n_boot, seed)), again


def _of_one_job(job: Job) -> tuple[dict[str, float], pd.DataFrame | None]:
    """The same for a judge that sees one answer a request; others are asked again with all jobs of a sweep."""
    pipeline = job.pipeline
    judge = pipeline.components.judge
    if not isinstance(judge, BatchJudge) or judges_together(judge):
        return {}, None
    shown = pipeline.to_judge(pipeline.answers)
    one = str(job.n_tokens)
    candidates = shown[["qid", "answer"]].assign(candidate=one)
    verdicts = pipeline.verdicts[["qid", "label"]].assign(candidate=one)
    return judged_again(pipeline, candidates, verdicts, job.n_boot, job.seed)
