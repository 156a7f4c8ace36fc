"""Checks requirements of components on each other, the dataset and the job, before any work."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ragauge.contract.component import KeepsReplies
from ragauge.contract.errors import ConfigError, RagaugeError
from ragauge.contract.groups import ANSWERS, GROUPS
from ragauge.contract.identity import identity
from ragauge.contract.retrieval import BringsTexts
from ragauge.contract.topics import references, scorable, wrong_answers

if TYPE_CHECKING:
    from ragauge.contract.stages import Components
    from ragauge.experiment.stages.pipeline import Pipeline

log = logging.getLogger(__name__)


def check_together(components: Components, choices: Mapping[str, str]) -> None:
    """Raises ConfigError for components that are valid alone but not in one job."""
    identity(components.reranker)  # a model that is not there is told before any work
    rewriter, retriever = components.rewriter, components.retriever
    chosen = {group: f"{group}={choices.get(group, '?')}" for group in GROUPS}
    if rewriter.kind != "none" and not retriever.takes_queries:
        raise ConfigError(
            f"{chosen['retriever']} takes no queries of a rewriter: with {chosen['rewriter']} choose another "
            "retriever, such as sim"
        )
    by_itself = components.llm.kind == "service" and not components.llm.takes_context
    if by_itself and retriever.top_k != 0 and not isinstance(retriever, BringsTexts):
        log.warning(
            "%s answers from what it retrieves by itself (its request has no {context}); the IR score "
            "is that of %s: choose retriever=service, or none", chosen["llm"], chosen["retriever"],
        )  # fmt: skip
    if retriever.reorder_after_cut and not components.order.by_rank:
        raise ConfigError(f"{chosen['retriever']} brings its own order: with {chosen['order']} choose retriever=sim")
    for group in ("rewriter", "reranker", "compressor"):
        part = getattr(components, group)
        if part.needs_chat and components.llm.kind != "chat":
            raise ConfigError(
                f"{chosen[group]} asks a chat model, and {chosen['llm']} is none: choose an llm that is one "
                f"(ollama, openai), or a {group} that asks none"
            )


def check_ready(pipeline: Pipeline) -> None:
    """RagaugeError for a chat model that lacks key or server, before what comes ahead of its first call is computed.

    Where the store has an output of the model, it may be this job's, so that nothing is asked.
    """
    for group, stage in (("llm", "answers"), ("judge", "verdicts"), ("evaluator", "answer_values")):
        if isinstance(model := getattr(pipeline.components, group), KeepsReplies):
            try:
                model.check_ready(pipeline.store)
            except RagaugeError as error:
                if pipeline.store.has_output_of(stage, identity(model)):
                    continue
                if isinstance(error, ConfigError):
                    raise ConfigError(f"{group}.{error}") from None
                raise


_ASKS = (
    "asks an LLM, and the llm of this job is no chat model: choose an evaluator ("
    "evaluator=ollama, openai, openai_compatible)"
)


def check_measures(pipeline: Pipeline, alone: bool = True) -> None:
    """ConfigError for a measure whose `needs` (LLM, answers, contexts, references, evidence) the job lacks.

    A measure that is `optional` is left out of the job instead. `check_topics` of the others gets the topics, and
    raises what is wrong with its own files. Reads these and the dataset alone, and asks no LLM. A job of a sweep (not
    `alone`) may have no contexts: it is what the others are compared with.
    """
    of_evidence = pipeline.components.measure
    if "chat" in of_evidence.uses and pipeline.evaluator_chat is None:
        raise ConfigError(f"measure={of_evidence.name} {_ASKS}")
    measures = pipeline.components.answers
    if not measures:
        return
    without: dict[str, str] = {}
    for lacking, told in _lacking(pipeline, alone):
        for name, measure in measures.items():
            asks = {"chat"} & measure.uses if measure.own_chat is None else set()
            if lacking in {*measure.needs, *asks}:
                if not measure.optional:
                    raise ConfigError(f"{ANSWERS}.{name} {told}")
                without.setdefault(name, told)
    for name, measure in measures.items():
        if name not in without:
            measure.check_topics(pipeline.frame("topics"))
    for name, told in without.items():
        log.info("left out: %s.%s %s", ANSWERS, name, told)
    pipeline.leave_out(without)


def _lacking(pipeline: Pipeline, alone: bool) -> Iterator[tuple[str, str]]:
    of = pipeline.components
    if pipeline.evaluator_chat is None:
        yield "chat", _ASKS
    if of.llm.kind in ("none", "recorded") or not of.llm.takes_context:
        why = {"none": "gives no answers", "recorded": "was asked before; no LLM is set up here"}
        yield (
            "generator",
            (
                "has the llm answer from other contexts, and this job's llm "
                f"{why.get(of.llm.kind, 'answers from what it retrieves by itself')}"
            ),
        )
    if of.judge.kind in ("none", "recorded"):
        yield "judge", "has the judge label answers, and this job's judge labels none that are new"
    if of.llm.kind == "none":
        yield "answers", "measures answers, and llm=none gives none"
    if of.llm.kind in ("chat", "embedded") and not of.llm.cite:
        yield (
            "citations",
            "measures citations, and this llm gives none: set llm.cite=true of a chat model",
        )
    if alone and (pipeline.n_tokens == 0 or of.retriever.top_k == 0):
        yield "contexts", "measures contexts, and this job gives the LLM none"
    if of.retriever.condition not in (None, 0):
        yield "plain", "is measured on the plain evidence alone, retriever.condition=0"
    topics = pipeline.frame("topics")
    if not any(references(topics).values()):
        yield "references", "compares with reference answers, and no topic of this dataset has one"
    if not wrong_answers(topics):
        yield (
            "changed",
            (
                "compares with what documents with a changed fact lead to, and no topic of this dataset has "
                "wrong_answers: dataset=fictional dataset.twins=true and RGB's file en_fact.json have"
            ),
        )
    if scorable(pipeline.frame("evidence"), topics).empty:
        yield "evidence", "compares with evidence, and no topic of this dataset has the text of any"
