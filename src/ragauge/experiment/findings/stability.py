"""How stable a judge's labels are: some topics judged again, and what their labels say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from ragauge.contract.protocols import BatchJudge, judges_together
from ragauge.estimate import judge_stability, summary
from ragauge.experiment.outcomes import metrics

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline

_KEYS = ["qid", "candidate"]


def judged_again(
    pipeline: Pipeline, candidates: pd.DataFrame, verdicts: pd.DataFrame, n_boot: int, seed: int
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


def of_one_job(pipeline: Pipeline, n_boot: int, seed: int) -> dict[str, float]:
    """The same metrics for a judge that sees one answer a request, with those of what asking again cost.

    {} for other judges: those are asked again where the jobs of a sweep are judged together.
    """
    judge = pipeline.components.judge
    if not isinstance(judge, BatchJudge) or judges_together(judge):
        return {}
    shown = pipeline.to_judge(pipeline.answers)
    one = str(pipeline.n_tokens)
    candidates = shown[["qid", "answer"]].assign(candidate=one)
    verdicts = pipeline.verdicts[["qid", "label"]].assign(candidate=one)
    stability, again = judged_again(pipeline, candidates, verdicts, n_boot, seed)
    return stability | (metrics.costs(again, "judge_") if len(again) else {})
