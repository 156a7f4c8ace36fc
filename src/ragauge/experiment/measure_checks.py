"""What the answer measures of a job need, checked before any work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ragauge.contract.errors import ConfigError
from ragauge.contract.groups import ANSWERS
from ragauge.contract.topics import references, scorable

if TYPE_CHECKING:
    from ragauge.experiment.pipeline import Pipeline


def check_measures(pipeline: Pipeline, alone: bool = True) -> None:
    """ConfigError for a measure that `needs` an LLM, answers, contexts, references or evidence, and has none.

    Reads the dataset alone; nobody is asked. A job of a sweep (not `alone`) may have no contexts: it is what
    the others are compared with.
    """
    measures = pipeline.components.answers
    if not measures:
        return
    for lacking, told in _lacking(pipeline, alone):
        for name, measure in measures.items():
            if lacking in {*getattr(measure, "needs", ()), *({"chat"} & measure.uses)}:
                raise ConfigError(f"{ANSWERS}.{name} {told}")


def _lacking(pipeline: Pipeline, alone: bool) -> Iterator[tuple[str, str]]:
    of = pipeline.components
    if pipeline.evaluator_chat is None:
        yield (
            "chat",
            (
                "asks an LLM, and the llm of this job is no chat model: choose an evaluator ("
                "evaluator=ollama, openai, openai_compatible)"
            ),
        )
    if of.llm.kind in ("none", "recorded") or not getattr(of.llm, "takes_context", True):
        why = {"none": "gives no answers", "recorded": "was asked before: there is nobody to ask"}
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
    if alone and (pipeline.n_tokens == 0 or getattr(of.retriever, "top_k", 1) == 0):
        yield "contexts", "measures contexts, and this job gives the LLM none"
    topics = pipeline.frame("topics")
    if not any(references(topics).values()):
        yield "references", "compares with reference answers, and no topic of this dataset has one"
    if scorable(pipeline.frame("evidence"), topics).empty:
        yield "evidence", "compares with evidence, and no topic of this dataset has the text of any"
