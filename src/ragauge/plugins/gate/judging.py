"""Judges a sample look by look (`judge.looks`), until the rules of the job's gate are decided.

Each look judges the next topics of the order in which samples nest, so that it has paid for what all looks so far need.
The looks spend the gate's error as those of `--look` do (`ragauge.plugins.gate.looks`).
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.estimate.ppi import ppi_shares
from ragauge.findings.per_question import per_question
from ragauge.plugins.gate.checking import Gated, evaluate, gate_of
from ragauge.plugins.gate.taken import OwnLooks
from ragauge.track import Reader, tracking_uri

if TYPE_CHECKING:
    from ragauge.experiment.measured import MeasuredJob
    from ragauge.track import Run

log = logging.getLogger(__name__)


class _Growing(Reader):
    """Reads MLflow, and the questions of a run whose verdicts MLflow does not have yet."""

    def __init__(self, uri: str, run_id: str, questions: pd.DataFrame) -> None:
        super().__init__(uri)
        self.run_id, self.questions = run_id, questions

    def table(self, run_id: str, name: str) -> pd.DataFrame:
        return self.questions if run_id == self.run_id else super().table(run_id, name)


def judge_in_looks(job: MeasuredJob, logged: Run) -> None:
    """Judges the job's sample in batches; stops once every rule about verdicts is decided.

    The looks are then in a tag of its run, where the gate finds them.
    """
    settings, pipeline, gate = job.settings, job.pipeline, gate_of(job.settings)
    sample, of = pipeline.sample, int(settings.judge["looks"])
    assert sample is not None
    qids = pipeline.frame("topics")["qid"]
    most = int(sample.chosen(qids, pipeline.unjudged)["judged"].sum())
    uri = tracking_uri(settings.tracking.uri)
    run = Reader(uri).run(logged.run_id)
    verdicts: list[pd.DataFrame] = []
    before: set[str] = set()
    looks = OwnLooks(gate, of, most, [], {})
    for number in range(1, of + 1):
        chosen = replace(sample, n=round(most * number / of)).chosen(qids, pipeline.unjudged)
        pipeline.set_sampled(chosen.assign(judged=chosen["judged"] & ~chosen["qid"].isin(before)))
        verdicts.append(pipeline.verdicts)
        pipeline.set_sampled(chosen)
        pipeline.set_verdicts(pd.concat(verdicts, ignore_index=True))
        job.__dict__.pop("outcomes", None)  # of the look before
        before, rows = set(chosen.loc[chosen["judged"], "qid"]), job.outcomes
        looks = OwnLooks(gate, of, most, [*looks.topics, len(before)], looks.least_now())
        growing = _Growing(uri, run.run_id, per_question(pipeline, rows))
        metrics = {**job.metrics, **_shares(rows)}
        own = Gated(run.name, run.run_id, metrics, lambda: pipeline.sliced, run, growing, looks)
        looked = [check for check in evaluate(gate, [own], settings.tracking.uri).checks if check.look]
        for check in looked:
            log.info("judge.looks: %s", check.said)
        if looked and all(check.verdict not in ("inconclusive", "invalid") for check in looked):
            break
    logged.tag(looks.tag())


def _shares(rows: pd.DataFrame) -> dict[str, float]:
    """The class shares of the sample so far, as in the job's metrics; {} if nothing has a verdict."""
    try:
        found = ppi_shares(rows)
    except DataError:
        return {}
    return {
        f"{row['share']}{end}": float(row[column])
        for row in found.to_dict("records")
        for end, column in (("", "estimate"), ("_lo", "lo"), ("_hi", "hi"))
    }
