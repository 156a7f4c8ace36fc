"""What answer measures say of a job's answers beside a value per topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import NO_CLAIMS, infos_of
from ragauge.contract.finding import Found, Founds, JobFinding, Shown
from ragauge.contract.jobs import Job
from ragauge.contract.offers import AnswerMeasureOffers, offered
from ragauge.contract.protocols import MeasuresJob
from ragauge.experiment.outcomes import metrics

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline


class AnswersMeasured(JobFinding):
    """Shares of answers without claims, and what is measured of all answers together."""

    name = "answers"
    after = "answers"

    def compute(self, job: Job, found: Founds) -> Found:
        """What measures say of means beyond their limits. Answers and their values are made here."""
        job.frame("answers")  # before measures ask about them
        told = warnings_of(job.frame("answer_values"), job.pipeline.components.answers)
        return Found(told, metrics={**without_claims(job.pipeline), **of_all_answers(job.pipeline)})

    def show(self, job: Job, value: list[str], found: Founds) -> Shown:
        """The sentences, as warnings."""
        return Shown(notes=value)


class RecordedAnswers(JobFinding):
    """What a file says that its answers took."""

    name = "recorded_answers"
    after = "answers"

    def compute(self, job: Job, found: Founds) -> Found | None:
        """A sentence where n_tokens cuts the contexts; None where answers are not recorded."""
        pipeline = job.pipeline
        if pipeline.components.llm.kind != metrics.RECORDED:
            return None
        laid_out = (job.frame(name) for name in ("run", "layouts", "prefixes"))
        cut = metrics.cut_after_answers(job.n_tokens, *laid_out)
        return Found(cut, metrics=metrics.recorded(pipeline.answers))

    def show(self, job: Job, value: str | None, found: Founds) -> Shown:
        """The sentence, as a warning."""
        return Shown(notes=[] if value is None else [value])


def without_claims(pipeline: Pipeline) -> dict[str, float]:
    """<measure>_no_claims: the share of topics whose answer, or reference answer, holds no claim to measure.

    Of every measure that may lack claims. It is a part of <measure>_missing; the rest are failures, and what
    else a topic lacks.
    """
    values, n = pipeline.frame("answer_values"), len(pipeline.frame("topics"))
    infos = [
        info
        for stage in pipeline.stages
        if offered(stage.component, AnswerMeasureOffers).may_lack_claims
        for info in stage.infos
    ]
    counts = values.loc[values["status"].eq(NO_CLAIMS), "measure"].value_counts()
    return {f"{info.name}_no_claims": float(counts.get(info.name, 0)) / n for info in infos}


def of_all_answers(pipeline: Pipeline) -> dict[str, float]:
    """What answer measures say of all answers together, such as the corpus BLEU."""
    found: dict[str, float] = {}
    for measure in pipeline.components.answers.values():
        if isinstance(measure, MeasuresJob):
            found |= measure.of_job(pipeline.frame("topics"), pipeline.answers)
    return found


def warnings_of(values: pd.DataFrame, measures: Mapping[str, Any]) -> list[str]:
    """What answer measures say of means that are beyond their limits."""
    means = values.groupby("measure")["value"].mean()
    told = [info.warning(float(means.get(info.name, np.nan))) for one in measures.values() for info in infos_of(one)]
    return [one for one in told if one]
