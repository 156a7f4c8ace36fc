"""Where a job lost its evidence, and why its topics failed: found, logged, and kept with the outcomes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ragauge.diagnose.causes import CAUSES, OF_RETRIEVAL, causes
from ragauge.diagnose.failures import (
    CAUSE,
    DECIDED_BY,
    EVERY_CAUSE,
    cause_shares,
    causes_by_slice,
    failure_metrics,
)
from ragauge.diagnose.funnel import ALL, evidence_in_context, funnel, funnel_metrics
from ragauge.diagnose.places import all_from_context, evidence_places
from ragauge.diagnose.rules import RULE_CAUSES, failures_by_rules
from ragauge.estimate.outcomes import labels_of
from ragauge.measures.floor import is_corrected

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline
    from ragauge.track import Run

log = logging.getLogger(__name__)

RULES = "rules"  # value of the config's `failures`
_WRONG = (2, 4)
_KEYS = ["qid", "part"]


def evidence_parts(pipeline: Pipeline) -> pd.DataFrame | None:
    """A row per evidence part with a column for each step of the job's funnel; None where it has none.

    `unreranked` is what the order before reranking would have within the budget. The values are those of the
    measure without its correction, which hangs on the budget.
    """
    names = {stage.name for stage in pipeline.stages}
    if "funnel" not in names:
        return None
    trail = pipeline.frame("evidence_trail")
    corrected = is_corrected(pipeline.components.measure)
    within = pipeline.frame_for("corrected", "part_scores") if corrected else pipeline.frame("part_scores")
    found = _with_step(trail, within, "context", pipeline.n_tokens)
    if "funnel_unreranked" in names:
        found = _with_step(found, pipeline.frame("unreranked_scores"), "unreranked", pipeline.n_tokens)
    return found


def _with_step(trail: pd.DataFrame, scores: pd.DataFrame, step: str, n_tokens: int) -> pd.DataFrame:
    at_n = scores.loc[scores["n_tokens"] == n_tokens, [*_KEYS, "value"]].rename(columns={"value": step})
    return trail.merge(at_n, on=_KEYS, how="left", validate="one_to_one")


def funnel_of_job(pipeline: Pipeline) -> dict[str, float]:
    """The metrics of the job's funnel; {} where it has none, which is told."""
    parts = evidence_parts(pipeline)
    if parts is None:
        name = pipeline.components.measure.name
        log.info("measure=%s uses a model, so there is no funnel: every step would have to be asked", name)
        return {}
    return funnel_metrics(funnel(parts))


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


def log_failures(
    outcomes: pd.DataFrame, pipeline: Pipeline, failures: str, n_boot: int, seed: int, run: Run
) -> dict[str, float]:
    """Logs every failed topic with its cause, and the causes overall and by slice; returns the metrics."""
    if CAUSE not in outcomes:
        return {}
    failed = outcomes[outcomes[CAUSE].notna()]
    columns = {
        "query": "query", CAUSE: "cause", DECIDED_BY: "decided_by", "evidence_place": "evidence_place",
        "evidence_in_context": "evidence_in_context", "label": "label",
        "answer_in_context": "answer_in_context", "answer": "answer",
        "answer_reference": "answer_reference", "ir_score": "ir_score", "qid": "qid",
    }  # fmt: skip
    there = {name: shown for name, shown in columns.items() if name in failed}
    run.table(failed[list(there)].rename(columns=there), "failures.json")
    possible = CAUSES if _judged(pipeline) else OF_RETRIEVAL
    names = list(RULE_CAUSES if failures == RULES else possible)
    shares = cause_shares(outcomes, n_boot, seed, names)
    known = [EVERY_CAUSE[name] for name in shares["cause"]]
    shares = shares.assign(what_to_try=[c.advice for c in known], overrides=[c.overrides for c in known])
    run.table(shares, "failure_causes.json")
    by_slice = causes_by_slice(outcomes, n_boot, seed)
    if len(by_slice):
        run.table(by_slice, "failure_slices.json")
    return failure_metrics(shares)
