"""What a job tells of its parts beside its estimates: costs, what topics take, latency, what topics lack."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import NO_CLAIMS, infos_of
from ragauge.contract.errors import RagaugeError
from ragauge.contract.groups import ANSWERS, GROUPS
from ragauge.contract.protocols import Describes, MeasuresJob
from ragauge.experiment.outcomes import metrics
from ragauge.experiment.stages.latency import latency
from ragauge.experiment.stages.order import question_stages
from ragauge.experiment.stages.varied import AnswerVaried, JudgeVaried

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.experiment.stages.pipeline import Pipeline

log = logging.getLogger(__name__)

_NAMED = 10  # topics that lack something, in a record


def descriptions(pipeline: Pipeline) -> dict[str, str]:
    """What components say of how they do it (for example that queries were made without an LLM), as tags."""
    told: dict[str, str] = {}
    for group in GROUPS:
        component = getattr(pipeline.components, group)
        if isinstance(component, Describes):
            told |= {f"{group}.{k}": str(v) for k, v in component.describe(pipeline.tools).items()}
    for name, measure in pipeline.components.answers.items():
        if isinstance(measure, Describes):
            told |= {f"{ANSWERS}.{name}.{k}": str(v) for k, v in measure.describe(pipeline.tools).items()}
    return told


def costs_of_parts(pipeline: Pipeline) -> dict[str, float]:
    """What the parts before the llm took: calls and money (`rewriter_llm_calls`), and what they count."""
    found: dict[str, float] = {}
    chats = {s.group: pipeline.chat_of(s) for s in pipeline.stages if s.group and "chat" in s.uses}
    for group, chat in chats.items():
        if chat is not None:
            found |= metrics.costs(chat.replies(group), f"{group}_")
    for stage in pipeline.stages:
        chat = pipeline.chat_of(stage) if "chat" in stage.uses else None
        if chat is not None and stage.asks_as != stage.group:
            own = metrics.costs(chat.replies(stage.asks_as), f"{stage.asks_as.replace('.', '_')}_")
            found |= {name: value for name, value in own.items() if "_llm_calls" in name}
        if isinstance(stage, AnswerVaried | JudgeVaried):
            found |= _costs_of_varied(pipeline, stage)
    parts = (getattr(pipeline.components, group) for group in GROUPS)
    found |= {name: 0 for part in parts for name in getattr(part, "counts", ())}
    of_topics = getattr(pipeline.components.reranker, "topic_counts", ())
    return {**found, **pipeline.tools.counted, **metrics.topic_sums(pipeline.frame("run"), of_topics)}


def without_claims(pipeline: Pipeline) -> dict[str, float]:
    """<measure>_no_claims: the share of topics whose answer, or reference answer, holds no claim to measure.

    Of every measure that may lack claims. It is a part of <measure>_missing; the rest are failures, and what
    else a topic lacks.
    """
    values, n = pipeline.frame("answer_values"), len(pipeline.frame("topics"))
    infos = [
        info for stage in pipeline.stages if getattr(stage.component, "may_lack_claims", False) for info in stage.infos
    ]
    counts = values.loc[values["status"].eq(NO_CLAIMS), "measure"].value_counts()
    return {f"{info.name}_no_claims": float(counts.get(info.name, 0)) / n for info in infos}


def _costs_of_varied(pipeline: Pipeline, stage: AnswerVaried | JudgeVaried) -> dict[str, float]:
    """What the answers from other contexts took, or the verdicts on them; of the store, nothing."""
    entry = pipeline.entry(stage.label)
    replies = entry.frame(stage.makes[0])
    if not entry.made:
        replies = replies.assign(cached=True, cost_usd=0.0)
    # A topic has several, each a request of its own.
    replies = replies.assign(qid=[f"{qid} {v}" for qid, v in zip(replies["qid"], replies["variant"], strict=True)])
    return metrics.costs(replies, stage.measure.calls + ("judge_" if isinstance(stage, JudgeVaried) else ""))


def per_topic(pipeline: Pipeline) -> dict[str, float]:
    """Of a topic, on average: tokens of context, and what it took from question to answer when that was made.

    seconds_per_topic is of a batch: what the stages took to make what they made for all topics, whoever made
    it, over their number. cost_usd_per_topic counts replies of the ledger at their price. What nobody told
    is left out.
    """
    making = [pipeline.making[s.name] for s in question_stages(pipeline.stages) if s.name in pipeline.making]
    contexts = pipeline.contexts
    return {
        "context_tokens": float(contexts["n_used"].mean()),
        "seconds_per_topic": sum(made.seconds for made in making) / len(contexts),
        "cost_usd_per_topic": sum(made.cost_usd for made in making) / len(contexts),
    }


def of_all_answers(pipeline: Pipeline) -> dict[str, float]:
    """What answer measures say of all answers together, such as the corpus BLEU."""
    found: dict[str, float] = {}
    for measure in pipeline.components.answers.values():
        if isinstance(measure, MeasuresJob):
            found |= measure.of_job(pipeline.frame("topics"), pipeline.answers)
    return found


def warnings_of(values: pd.DataFrame, measures: Mapping[str, Any]) -> list[str]:
    """What answer measures tell of means that are beyond their limits."""
    means = values.groupby("measure")["value"].mean()
    told = [info.warning(float(means.get(info.name, np.nan))) for one in measures.values() for info in infos_of(one)]
    return [one for one in told if one]


def latencies(pipeline: Pipeline, cfg: DictConfig) -> dict[str, float]:
    """The metrics of the latency; none where it cannot be measured: everything else is there by now."""
    try:
        return latency(pipeline, int(cfg.latency_topics), int(cfg.seed))
    except RagaugeError as error:
        log.warning("latency was not measured: %s", error)
        return {}


def lacking(pipeline: Pipeline) -> dict[str, Any]:
    """What a job's record holds of its topics: their number and how many lack what, the first ten of these.

    metrics: topics, topics_<what>; lacking: qids by what (see `metrics.lacking`).
    """
    topics, lost = pipeline.frame("topics"), pipeline.frame("lost_evidence")
    found = metrics.lacking(topics, pipeline.frame("scored_evidence"), lost, pipeline.unjudged)
    counts = {f"topics_{name}": len(qids) for name, qids in found.items()}
    return {
        "metrics": {"topics": len(topics), **counts},
        "lacking": {name: qids[:_NAMED] for name, qids in found.items()},
    }
