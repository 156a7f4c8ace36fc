"""The cost of the jobs: calls and money by component, seconds by stage and by question."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ragauge.contract.finding import (
    Block,
    Card,
    Cell,
    Col,
    Finding,
    Fold,
    Found,
    Founds,
    Grid,
    Heading,
    Heads,
    JobFinding,
    Num,
    Section,
    Shown,
    Tagged,
    Text,
)
from ragauge.contract.groups import CALLS, GROUPS
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.metrics import COSTS, Metric
from ragauge.contract.record import JobRecord
from ragauge.contract.replies import CUT, ECHO
from ragauge.contract.stages import Stage, Stages
from ragauge.contract.usage import OPTIONAL
from ragauge.show.formats import milliseconds, seconds, usd, whole

RECORDED = "recorded"  # kind of an llm or judge that reads what was said elsewhere


class Costs(JobFinding):
    """Calls, tokens, money, counts of components, and averages per topic."""

    name = "costs"
    after = "answers"
    metrics = (
        *COSTS,
        Metric("answers_*_llm_calls{,_cached}", group="cost"),
        Metric("context_tokens", group="cost"),
        Metric("{cost_usd,seconds}_per_topic", group="cost"),
    )

    def compute(self, job: Job, found: Founds) -> Found:
        """Lines about the replies; the judge's costs are in `judge_costs`."""
        pipeline = job.pipeline
        answers = plus(costs_of_replies(pipeline.all_answers), costs_ahead(pipeline, "answers"))
        parts = costs_of_parts(pipeline)
        told = notes_of_replies({**parts, **answers}, int(pipeline.all_answers["answer"].notna().sum()))
        return Found(told, metrics={**answers, **parts, **per_topic(pipeline)})

    def show(self, job: Job, value: list[str], found: Founds) -> Shown:
        """The sentences, as warnings."""
        return Shown(notes=value)


class JudgeCosts(JobFinding):
    """Calls, tokens and money of the judge, including repetitions and probes."""

    name = "judge_costs"

    def compute(self, job: Job, found: Founds) -> Found:
        """Lines about the replies."""
        again, (probes, _) = found.get("judged_again", {}), found.get("judge_tried", ({}, []))
        costs = costs_of_replies(job.pipeline.all_verdicts, "judge_")
        more = plus(costs_ahead(job.pipeline, "verdicts", "judge_"), again)
        return Found(notes_of_replies(costs), metrics=plus(costs, plus(more, probes)))

    def show(self, job: Job, value: list[str], found: Founds) -> Shown:
        """The sentences, as warnings."""
        return Shown(notes=value)


def costs_of_replies(replies: pd.DataFrame, prefix: str = "") -> dict[str, float]:
    """Calls, tokens and money of answers, or of verdicts with `prefix="judge_"`.

    A request that the store or the ledger answered, or another job's verdicts paid for, counts as cached: it
    has no tokens and no cost here. llm_usage_unknown is how many calls are charged at the most they can cost. llm_cut,
    llm_echoes and llm_thoughts count the rows, cached ones too, whose reply was cut at the token limit, repeated the
    prompt, or came with thoughts; they are left out where there are none. cached_tokens and written_tokens are left out
    where no server reported them.
    """
    told = "calls" in replies  # frames of parts that do not count their calls have tokens alone
    calls = replies["calls"] if told else replies["prompt_tokens"].gt(0).astype(int)
    paid = ~replies["cached"]
    own = calls.gt(0) & paid
    answered = calls.gt(0) & ~paid
    # Verdicts that came in one request name it; its calls stand at the first of them.
    request = replies["request"] if "request" in replies else replies["qid"]
    if told and "request" in replies:
        answered = request.notna() & replies["status"].ne("missing") & ~own
    begins = {name: replies["error"].str.startswith(error).eq(True).sum() if "error" in replies else 0
              for name, error in (("llm_cut", CUT), ("llm_echoes", ECHO))}  # fmt: skip
    thoughts = replies["thoughts"].notna().sum() if "thoughts" in replies else 0
    unknown = replies["usage_unknown"] if "usage_unknown" in replies else calls * 0
    return {
        f"{prefix}llm_calls": int(calls[own].sum() if told else request[own].nunique()),
        f"{prefix}llm_calls_cached": int(request[answered & ~request.isin(request[own])].nunique()),
        f"{prefix}llm_usage_unknown": int(unknown[own].sum()),
        f"{prefix}prompt_tokens": int(replies.loc[paid, "prompt_tokens"].sum()),
        f"{prefix}completion_tokens": int(replies.loc[paid, "completion_tokens"].sum()),
        f"{prefix}cost_usd": float(replies.loc[paid, "cost_usd"].sum()),
        **{
            f"{prefix}{name}": int(known.sum())
            for name in OPTIONAL
            if name in replies and len(known := replies.loc[paid, name].dropna())
        },
        **{f"{prefix}{name}": int(n) for name, n in begins.items() if n},
        **({f"{prefix}llm_thoughts": int(thoughts)} if thoughts else {}),
    }


def costs_ahead(pipeline: Any, name: str, prefix: str = "") -> dict[str, float]:
    """Calls, tokens and money of the answers or verdicts that the job paid for other budgets of its sweep."""
    sums: dict[str, float] = {}
    for part in pipeline.parts.values():
        for replies in part.ahead.paid.get(name, []) if part.ahead else []:
            alone = replies.drop(columns=["error", "thoughts"], errors="ignore")
            sums = plus(sums, costs_of_replies(alone, prefix))
    return sums


def plus(costs: Mapping[str, float], more: Mapping[str, float]) -> dict[str, float]:
    """The sums of values by name."""
    return {name: costs.get(name, 0) + more.get(name, 0) for name in {**costs, **more}}


def notes_of_replies(metrics: Mapping[str, float], n_answers: int = 0) -> list[str]:
    """Sentences on replies cut at the token limit, on those that repeat the prompt, and on those with thoughts.

    n_answers: how many answers there are; 0 where it is not known.
    """
    told = {"llm_cut": "Replies cut at the token limit: {}; max_tokens (num_predict) of the model's chat sets it",
            "llm_echoes": "Replies that repeat the prompt and count as none: {}",
            "llm_thoughts": "Replies with thoughts, which are no part of what is measured: {}"}  # fmt: skip
    notes = []
    for name, sentence in told.items():
        counts = {prefix: metrics.get(f"{prefix}{name}", 0) for prefix in CALLS}
        listed = [
            f"{CALLS[prefix].lower()} {whole(n)}" + (f" of {whole(n_answers)}" if not prefix and n <= n_answers else "")
            for prefix, n in counts.items()
            if n
        ]
        if listed:
            notes.append(sentence.format(", ".join(listed)))
    return notes


def full_cost(replies: pd.DataFrame, chat: Any) -> float:
    """Original cost of the replies in US dollars: cached ones by their tokens and the chat's price.

    `chat` is the model that gave them; cached replies of one that tells no `cost` count nothing. NaN where
    it is a service, which alone knew.
    """
    cached = replies["cached"].astype(bool)
    paid = float(replies.loc[~cached, "cost_usd"].sum())
    return paid + float(chat.cost_of_kept(replies[cached]))


def taken(answers: pd.DataFrame) -> tuple[float, float]:
    """Original seconds and US dollars of recorded answers; NaN if unknown."""
    seconds, cost = (float(answers[name].sum()) for name in ("seconds", "cost_usd"))
    return seconds or math.nan, cost or math.nan


def costs_of_parts(pipeline: Stages) -> dict[str, float]:
    """Calls and money of the components before the llm (`rewriter_llm_calls`), and their counts."""
    found: dict[str, float] = {}
    chats = {s.group: pipeline.chat_of(s) for s in pipeline.stages if s.group and "chat" in s.uses}
    for group, chat in chats.items():
        if chat is not None:
            found |= costs_of_replies(chat.replies(group), f"{group}_")
    for stage in pipeline.stages:
        chat = pipeline.chat_of(stage) if "chat" in stage.uses else None
        if chat is not None and stage.asks_as != stage.group:
            own = costs_of_replies(chat.replies(stage.asks_as), f"{stage.asks_as.replace('.', '_')}_")
            found |= {name: value for name, value in own.items() if "_llm_calls" in name}
        if stage.replies_as is not None:
            found |= _costs_of_varied(pipeline, stage)
    parts = (getattr(pipeline.components, group) for group in GROUPS)
    found |= {name: 0 for part in parts for name in part.counts}
    of_topics = pipeline.components.reranker.topic_counts
    return {**found, **pipeline.tools.counted, **_topic_sums(pipeline.frame("run"), of_topics)}


def _costs_of_varied(pipeline: Stages, stage: Stage) -> dict[str, float]:
    """Calls and money of answers from other contexts, or of verdicts on them; nothing if stored."""
    entry = pipeline.entry(stage.label)
    replies = entry.frame(stage.makes[0])
    if not entry.made:
        replies = replies.assign(cached=True, cost_usd=0.0)
    # A topic has several, each a request of its own.
    replies = replies.assign(qid=[f"{qid} {v}" for qid, v in zip(replies["qid"], replies["variant"], strict=True)])
    return costs_of_replies(replies, str(stage.replies_as))


def per_topic(pipeline: Stages) -> dict[str, float]:
    """Averages over topics: tokens of context, and original seconds and cost from question to answer.

    seconds_per_topic is of a batch: the time that the stages took to make their output for all topics, in any job, over
    the number of topics. cost_usd_per_topic counts replies of the ledger at their price. Unknown values are left out.
    """
    making = [pipeline.making[s.name] for s in pipeline.question_stages if s.name in pipeline.making]
    contexts = pipeline.contexts
    return {
        "context_tokens": float(contexts["n_used"].mean()),
        "seconds_per_topic": sum(made.seconds for made in making) / len(contexts),
        "cost_usd_per_topic": sum(made.cost_usd for made in making) / len(contexts),
    }


def _topic_sums(run: pd.DataFrame, columns: Sequence[str]) -> dict[str, float]:
    """Sums over topics of the run's columns with a number per topic, such as `reranker_repaired`."""
    first = run.drop_duplicates("qid")
    return {name: int(first[name].sum()) for name in columns if name in first}


# The columns of tables, with their heads; those of OPTIONAL stand there where a server reported them for any job.
COUNTED = {
    "llm_calls": "Calls", "llm_calls_cached": "Cached", "prompt_tokens": "Prompt tokens",
    "cached_tokens": "Read from cache", "written_tokens": "Written to cache",
    "completion_tokens": "Completion tokens", "cost_usd": "US dollars",
}  # fmt: skip
_ALWAYS = ("", "judge_")  # answers and verdicts are shown where nobody was asked, too
_NO_STAGES = ("total", "made_chunks", "made_index")

_SUMMED = (
    "llm_calls", "llm_calls_cached", "llm_usage_unknown", "llm_cut", "llm_echoes", "llm_thoughts",
    "prompt_tokens", "completion_tokens", "cached_tokens", "written_tokens", "cost_usd",
)  # fmt: skip


class Cost(Finding):
    """Calls, tokens, money and time of all jobs."""

    name = "cost"
    metrics = COSTS

    def compute(self, jobs: Jobs, found: Founds) -> Found:
        """Sums by component, as metrics with the names of the jobs' own."""
        names = [f"{prefix}{name}" for name in _SUMMED for prefix in CALLS]
        known = {name for record in jobs.records for name in record.metrics}
        summed = {n: sum(record.metrics.get(n, 0) for record in jobs.records) for n in names if n in known}
        return Found(costs(jobs.records), metrics=summed)

    def show(self, jobs: Jobs, value: dict[str, dict[str, float]], found: Founds) -> Shown:
        """Cost by component; in folds by stage and by job."""
        total = sum(record.metrics["seconds_total"] for record in jobs.records)
        columns = {name: Col(head) for name, head in COUNTED.items() if any(name in sums for sums in value.values())}
        blocks: list[Block] = [
            Grid("Cost", ["For", *columns.values()], [[who, *_counted(sums, columns)] for who, sums in value.items()]),
            Text(
                "A cached call was paid for by an earlier job and has no tokens and no cost here; what came from the "
                f"store costs nothing. The jobs took {seconds(total)} in all.",
                "small",
            ),
            *_latency_blocks(latencies(jobs.systems, jobs.records)),
        ]
        names = {name for record in jobs.records for name in record.metrics}
        of_all = {name: sum(record.metrics.get(name, 0) for record in jobs.records) for name in names}
        statuses = jobs.outcomes["answer_status"] if "answer_status" in jobs.outcomes else pd.Series(dtype="str")
        told = [f"{note}." for note in notes_of_replies(of_all, int(statuses.isin(["ok", "cut"]).sum()))]
        if stages := stage_seconds(jobs.records):
            rows: list[list[Cell]] = [[stage, Num(time, "seconds")] for stage, time in stages.items()]
            said = Text("A stage whose output was in the store took the time of reading it.", "small")
            grid = Grid("Seconds by stage", ["Stage", "Time"], rows)
            blocks.append(Fold("Seconds by stage, over all jobs", [said, grid]))
        of_jobs = [
            [job["system"], str(job["n_tokens"]), *_counted(job, columns), Num(job["seconds"], "seconds")]
            for job in costs_of_jobs(jobs.systems, jobs.records)
        ]
        heads: Heads = ["System", "N", *columns.values(), "Time"]
        blocks.append(Fold("By job", [Grid("Cost by job", heads, of_jobs)]))
        return Shown([Section("Cost", blocks)], lines=told, notes=told, cards=[_card(value)])


def _counted(sums: Mapping[str, float], names: Iterable[str]) -> list[Num]:
    return [Num(sums.get(name), "usd" if name == "cost_usd" else "whole") for name in names]


def _sums(records: Sequence[JobRecord], prefixes: Iterable[str]) -> dict[str, float]:
    """The sums of COUNTED over the records and prefixes; 0 where none has one, but for those of OPTIONAL."""
    of = {n: [r.metrics[key] for r in records for p in prefixes if (key := f"{p}{n}") in r.metrics] for n in COUNTED}
    return {name: sum(values) for name, values in of.items() if values or name not in OPTIONAL}


def _card(value: Mapping[str, Mapping[str, float]]) -> Card:
    paid, cached, cost = (
        sum(sums[name] for sums in value.values()) for name in ("llm_calls", "llm_calls_cached", "cost_usd")
    )
    below = f"{usd(cost)} USD; {whole(cached)} more were cached" if paid + cached else "no LLM was asked"
    return Card("LLM calls paid for", whole(paid), below)


def _latency_blocks(rows: Sequence[Mapping[str, Any]]) -> list[Block]:
    if not rows:
        return []
    columns = "System | N | End to end | <Of it | Questions"
    cells: list[list[Cell]] = []
    for row in rows:
        p50, p95 = row["stages"]["total"]
        parts = ", ".join(f"{s} {milliseconds(t[0])}" for s, t in row["stages"].items() if s != "total")
        both = Tagged(milliseconds(p50), below=milliseconds(p95))
        cells.append([row["system"], str(row["n_tokens"]), both, parts, str(row["topics"])])
    return [
        Heading("How long one question takes"),
        Text(
            "Questions sent one by one through every stage, the answer included, with models loaded and no cache "
            "answering. Shown are the median, and below it the 95th percentile, which one question in twenty exceeds. "
            "This is "
            "what a user waits for; the seconds of the jobs are those of a batch."
        ),
        Grid("Latency", columns, cells),
    ]


def costs(records: Sequence[JobRecord]) -> dict[str, dict[str, float]]:
    """Sums over the jobs by component with a chat model: {"Answers": {llm_calls, …, cost_usd}}."""
    there = [
        prefix
        for prefix in CALLS
        if prefix in _ALWAYS
        or any(record.metrics.get(f"{prefix}llm_calls") for record in records)
        or any(record.metrics.get(f"{prefix}llm_calls_cached") for record in records)
    ]
    return {CALLS[prefix]: _sums(records, [prefix]) for prefix in there}


def costs_of_jobs(systems: Sequence[str], records: Sequence[JobRecord]) -> list[dict[str, Any]]:
    """The seconds of every job, and its sums over components: {system, n_tokens, llm_calls, …}."""
    return [
        {
            "system": system,
            "n_tokens": record.n_tokens,
            **_sums([record], CALLS),
            "seconds": record.metrics["seconds_total"],
        }
        for system, record in zip(systems, records, strict=True)
    ]


def stage_seconds(records: Sequence[JobRecord]) -> dict[str, float]:
    """Seconds of every stage over all jobs, the longest first, without those under a tenth of a second.

    A stage that came from the store took the time of reading it.
    """
    sums: dict[str, float] = {}
    for record in records:
        for name, value in record.metrics.items():
            stage = name.removeprefix("seconds_")
            if name != stage and stage not in _NO_STAGES:
                sums[stage] = sums.get(stage, 0.0) + value
    return {stage: s for stage, s in sorted(sums.items(), key=lambda item: -item[1]) if s >= 0.1}


def latencies(systems: Sequence[str], records: Sequence[JobRecord]) -> list[dict[str, Any]]:
    """The measured latency of jobs: {system, n_tokens, topics, stages: {name: (median, 95th percentile)}}.

    The stages are in the order of the job, `total` is the last.
    """
    return [
        {
            "system": system,
            "n_tokens": record.n_tokens,
            "topics": int(record.metrics["latency_topics"]),
            "stages": dict(_percentiles(record.metrics)),
        }
        for system, record in zip(systems, records, strict=True)
        if "latency_topics" in record.metrics
    ]


def _percentiles(metrics: Mapping[str, float]) -> Iterator[tuple[str, tuple[float, float]]]:
    names = [n.removeprefix("latency_").removesuffix("_p50") for n in metrics if n.endswith("_p50")]
    for name in sorted(names, key=lambda name: name == "total"):
        yield name, (metrics[f"latency_{name}_p50"], metrics[f"latency_{name}_p95"])
