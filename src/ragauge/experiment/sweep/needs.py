"""Estimates the requests of judging at the end of a sweep: `dry_run`."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ragauge.contract.record import JobRecord
from ragauge.experiment.measured import MeasuredJob
from ragauge.experiment.measured_by import fitting_predictor, sample_topics
from ragauge.experiment.needs import before_judging, gathered, of_judge, to_ask, untold
from ragauge.experiment.sweep.waiting import judged_alike, started_from, waiting_job
from ragauge.llms.chat_use import Unasked


def needs_together(records: Sequence[JobRecord]) -> pd.DataFrame:
    """The requests of judging the jobs of a dry run together (see ragauge.experiment.needs)."""
    later = [record for record in records if record.judged_later]
    if not later:
        return gathered([])
    with started_from(later):
        groups: dict[str, list[MeasuredJob]] = {}
        for job in map(waiting_job, later):
            groups.setdefault(judged_alike(job), []).append(job)
        return gathered([frame for jobs in groups.values() for frame in _needs_of_group(jobs)])


def _needs_of_group(jobs: Sequence[MeasuredJob]) -> list[pd.DataFrame]:
    pipelines = {job.folder.number: job.pipeline for job in jobs}
    one, cfg = jobs[0].pipeline, jobs[0].cfg
    answers = {number: before_judging(pipeline)[1] for number, pipeline in pipelines.items()}
    known = {number: frame for number, frame in answers.items() if frame is not None}
    if not known or one.components.judge.kind != "chat":
        return []
    sampled = True
    try:
        predictor = fitting_predictor(one, cfg) if one.sampled_by_prediction else None
        sample_topics(list(pipelines.values()), predictor)
    except Unasked:  # which topics depends on what is retrieved: as many others stand for them
        sampled = False
    if one.components.judge.mode == "batch":
        candidates = [to_ask(pipelines[n], frame).assign(candidate=str(n)) for n, frame in known.items()]
        judge = one.components.judge
        topics, evidence = one.frame("topics"), one.frame("evidence")
        together = pd.concat(candidates, ignore_index=True)
        told = judge.needs(topics, evidence, together, one.tools, repeat=True)
        asked = [untold("judge", len(together)) if told is None else told.assign(who="judge")]
    else:
        asked = [of_judge(pipelines[n], frame) for n, frame in known.items()]
    return [frame.assign(exact=frame["exact"] & sampled) for frame in asked]
