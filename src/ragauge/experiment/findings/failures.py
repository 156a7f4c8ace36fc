"""Why the topics of a job failed: a cause for each, overall and by slice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ragauge.contract.finding import Found, Founds, JobFinding
from ragauge.contract.jobs import Job
from ragauge.diagnose.causes import CAUSES, OF_RETRIEVAL, causes
from ragauge.diagnose.failures import (
    CAUSE,
    DECIDED_BY,
    EVERY_CAUSE,
    cause_shares,
    causes_by_slice,
    failure_metrics,
)
from ragauge.diagnose.funnel import ALL, evidence_in_context
from ragauge.diagnose.places import all_from_context, evidence_places
from ragauge.diagnose.rules import RULE_CAUSES, failures_by_rules
from ragauge.estimate.outcomes import labels_of
from ragauge.experiment.findings.funnel import evidence_parts

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline

RULES = "rules"  # value of the config's `failures`
FOUND = ("evidence_in_context", "evidence_place", CAUSE, DECIDED_BY)  # columns that `with_failures` adds
_WRONG = (2, 4)
_COLUMNS = {  # of the outcomes to those of the table of failed topics
    "query": "query", CAUSE: "cause", DECIDED_BY: "decided_by", "evidence_place": "evidence_place",
    "evidence_in_context": "evidence_in_context", "label": "label",
    "answer_in_context": "answer_in_context", "answer": "answer",
    "answer_reference": "answer_reference", "ir_score": "ir_score", "qid": "qid",
}  # fmt: skip


class FailuresFound(JobFinding):
    """The causes of failure."""

    name = "failures"

    def compute(self, job: Job, found: Founds) -> Found | None:
        """The shares of the causes; None where none is known. Tables: the failed topics, shares, slices."""
        outcomes, failures = job.outcomes, job.cfg.failures
        if CAUSE not in outcomes:
            return None
        failed = outcomes[outcomes[CAUSE].notna()]
        there = {name: shown for name, shown in _COLUMNS.items() if name in failed}
        possible = CAUSES if _judged(job.pipeline) else OF_RETRIEVAL
        names = list(RULE_CAUSES if failures == RULES else possible)
        shares = cause_shares(outcomes, job.n_boot, job.seed, names)
        known = [EVERY_CAUSE[name] for name in shares["cause"]]
        shares = shares.assign(what_to_try=[c.advice for c in known], overrides=[c.overrides for c in known])
        by_slice = causes_by_slice(outcomes, job.n_boot, job.seed)
        return Found(
            shares,
            metrics=failure_metrics(shares),
            logged={
                "failures": failed[list(there)].rename(columns=there),
                "failure_causes": shares,
                **({"failure_slices": by_slice} if len(by_slice) else {}),
            },
        )


def with_failures(outcomes: pd.DataFrame, pipeline: Pipeline, failures: str) -> pd.DataFrame:
    """The outcomes with evidence_in_context (all, some, none), evidence_place, and the cause of failure.

    failure_cause and failure_decided_by are missing for a topic that did not fail. Without a funnel the
    outcomes are left as they are, unless `failures` asks for rules.
    """
    parts = evidence_parts(pipeline)
    if parts is not None:
        outcomes = _with_evidence(outcomes, parts, pipeline)
    if failures == RULES:
        found = failures_by_rules(outcomes)
    elif parts is None:
        return outcomes
    else:
        found = causes(_with_words(outcomes, pipeline), parts, _judged(pipeline))
    found = found.rename(columns={"cause": CAUSE, "decided_by": DECIDED_BY})
    return outcomes.merge(found, on="qid", how="left", validate="one_to_one")


def _judged(pipeline: Pipeline) -> bool:
    return pipeline.components.judge.kind != "none" and pipeline.components.llm.kind != "none"


def _with_evidence(outcomes: pd.DataFrame, parts: pd.DataFrame, pipeline: Pipeline) -> pd.DataFrame:
    there = outcomes["qid"].map(evidence_in_context(parts))
    contexts = dict(zip(pipeline.contexts["qid"], pipeline.contexts["text"], strict=True))
    whole = outcomes.loc[there == ALL, "qid"]
    places = evidence_places(pipeline.frame("scored_evidence"), contexts, whole)
    return outcomes.assign(
        evidence_in_context=there, evidence_place=outcomes["qid"].map(pd.Series(places, dtype="str"))
    )


def _with_words(outcomes: pd.DataFrame, pipeline: Pipeline) -> pd.DataFrame:
    """The outcomes with answer_from_context, of answers that were judged wrong."""
    wrong = outcomes[np.isin(labels_of(outcomes), _WRONG) & outcomes["answer"].notna().to_numpy()]
    contexts = dict(zip(pipeline.contexts["qid"], pipeline.contexts["text"], strict=True))
    told = all_from_context(wrong["qid"].tolist(), wrong["answer"].tolist(), wrong["query"].tolist(), contexts)
    return outcomes.assign(answer_from_context=outcomes["qid"].map(pd.Series(told, dtype=object)))
