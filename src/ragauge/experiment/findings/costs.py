"""What a job cost: calls and money of the llm, the parts before it and answer measures, and what a topic takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragauge.contract.finding import Found, Founds, JobFinding
from ragauge.contract.groups import GROUPS
from ragauge.contract.jobs import Job
from ragauge.contract.offers import PartOffers, offered
from ragauge.experiment.outcomes import metrics
from ragauge.experiment.stages.order import question_stages
from ragauge.experiment.stages.varied import AnswerVaried, JudgeVaried

if TYPE_CHECKING:
    from ragauge.experiment.stages.pipeline import Pipeline


class Costs(JobFinding):
    """Calls, tokens and money, what parts count, and what a topic takes."""

    name = "costs"
    after = "answers"

    def compute(self, job: Job, found: Founds) -> Found:
        """Metrics alone; the judge's are those of `judge_costs`."""
        pipeline = job.pipeline
        return Found(metrics={**metrics.costs(pipeline.answers), **costs_of_parts(pipeline), **per_topic(pipeline)})


class JudgeCosts(JobFinding):
    """Calls, tokens and money of the judge, those of asking it again among them."""

    name = "judge_costs"

    def compute(self, job: Job, found: Founds) -> Found:
        """Metrics alone."""
        again = found.get("judged_again", {})
        costs = metrics.costs(job.pipeline.verdicts, "judge_")
        return Found(metrics={name: value + again.get(name, 0) for name, value in costs.items()})


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
    found |= {name: 0 for part in parts for name in offered(part, PartOffers).counts}
    of_topics = offered(pipeline.components.reranker, PartOffers).topic_counts
    return {**found, **pipeline.tools.counted, **metrics.topic_sums(pipeline.frame("run"), of_topics)}


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
