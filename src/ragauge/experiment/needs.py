"""What a job would need of LLM and judge before any call is made: `dry_run=true`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pandas as pd

from ragauge.contract.protocols import AsksForAnswers, EstimatesCalls, EstimatesJudging, judges_together

if TYPE_CHECKING:
    from ragauge.experiment.pipeline import Pipeline

_COUNTS = ("calls", "calls_cached", "prompt_tokens", "completion_tokens", "cost_usd")
_UNKNOWN: dict[str, float] = {}  # of a component that cannot say what asking it would need
_TOKEN = "word "  # stands for a token of a context that is not known yet

# Requests that earlier jobs of this process counted: a sweep pays equal ones once.
_seen: set[str] = set()
_jobs = itertools.count()  # a number tells the unknown answers of a job from those of the others


def needs(pipeline: Pipeline) -> dict[str, dict[str, float]]:
    """Calls, tokens (estimates) and US dollars of `llm` and `judge`, beyond what is in the ledger; {} of one
    that cannot say.

    Retrieval is run, since contexts decide the prompts; where a retriever itself asks an LLM, contexts of
    n_tokens words stand in, and its own calls are counted under `retriever`.
    """
    topics, tools = pipeline.frame("topics"), pipeline.tools
    chat, llm, judge = tools.chat, pipeline.components.llm, pipeline.components.judge
    found: dict[str, dict[str, float]] = {}
    if "chat" in pipeline.components.retriever.uses and chat is not None:
        queries = topics["query"].tolist()
        found["retriever"] = _UNKNOWN
        if isinstance(chat, EstimatesCalls):
            found["retriever"] = chat.estimate(queries, pipeline.store, seen=_seen)
        contexts = pd.DataFrame(
            {"qid": topics["qid"], "n_tokens": pipeline.n_tokens, "text": _TOKEN * pipeline.n_tokens}
        )
    else:
        contexts = pipeline.contexts
    if llm.kind == "chat":
        found["llm"] = _UNKNOWN
        if isinstance(llm, AsksForAnswers) and isinstance(llm, EstimatesCalls):
            found["llm"] = llm.estimate(llm.prompts(topics, contexts), pipeline.store, seen=_seen)
    for name, measure in pipeline.components.answers.items():
        if "chat" in measure.uses and chat is not None and llm.kind != "none":
            found[f"answers.{name}"] = _UNKNOWN
    if judge.kind == "chat" and llm.kind != "none":
        asked = pipeline.to_judge(topics)
        candidates = pd.DataFrame(
            {
                "qid": asked["qid"],
                "candidate": f"{next(_jobs)}",
                "answer": pd.array([None] * len(asked), "str"),
            }
        )
        evidence = pipeline.frame("evidence")
        # In mode batch the jobs of a sweep share requests.
        who = "judge, at most" if judges_together(judge) else "judge"
        found[who] = _UNKNOWN
        if isinstance(judge, EstimatesJudging):
            found[who] = judge.estimate_judging(topics, evidence, candidates, tools, seen=_seen)
    return found


def total(of_jobs: Iterable[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """The needs of several jobs added up, by who asks."""
    sums: dict[str, dict[str, float]] = {}
    for job in of_jobs:
        for who, counts in job.items():
            at = sums.setdefault(who, dict.fromkeys(_COUNTS, 0.0) if counts else {})
            if not counts:
                continue
            for name in _COUNTS:
                at[name] += counts[name]
    return sums


def describe_needs(of_job: Mapping[str, Mapping[str, float]]) -> str:
    """One line: calls, tokens and money."""
    if not of_job:
        return "no LLM calls"
    return "; ".join(
        f"{who}: cannot tell before it is asked"
        if not n
        else f"{who}: {n['calls']:,.0f} calls ({n['calls_cached']:,.0f} paid before), "
        f"about {n['prompt_tokens']:,.0f} + {n['completion_tokens']:,.0f} tokens, {n['cost_usd']:,.2f} USD"
        for who, n in of_job.items()
    )
