"""What the jobs cost: calls and money by who asked, seconds by stage, and how long one question takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
    Num,
    Section,
    Shown,
    Tagged,
    Text,
)
from ragauge.contract.groups import CALLS
from ragauge.contract.jobs import Jobs
from ragauge.show.formats import milliseconds, seconds, usd, whole

COUNTED = ("llm_calls", "llm_calls_cached", "prompt_tokens", "completion_tokens", "cost_usd")
_ALWAYS = ("", "judge_")  # answers and verdicts are shown where nobody was asked, too
_NO_STAGES = ("total", "made_chunks", "made_index")

Record = Mapping[str, Any]
_SUMMED = ("llm_calls", "llm_calls_cached", "llm_usage_unknown", "prompt_tokens", "completion_tokens", "cost_usd")
_COUNTS = tuple(map(Col, ("Calls", "Cached", "Prompt tokens", "Completion tokens", "US dollars")))


class Cost(Finding):
    """Calls, tokens, money and time of all jobs."""

    name = "cost"

    def compute(self, jobs: Jobs, found: Founds) -> Found:
        """Sums by who asked; as metrics under the names of the jobs' own."""
        names = [f"{prefix}{name}" for name in _SUMMED for prefix in CALLS]
        known = {name for record in jobs.records for name in record["metrics"]}
        summed = {n: sum(record["metrics"].get(n, 0) for record in jobs.records) for n in names if n in known}
        return Found(costs(jobs.records), metrics=summed)

    def show(self, jobs: Jobs, value: dict[str, dict[str, float]], found: Founds) -> Shown:
        """Cost by who asked; by stage and by job behind a click."""
        total = sum(record["metrics"]["seconds_total"] for record in jobs.records)
        blocks: list[Block] = [
            Grid("Cost", ["For", *_COUNTS], [[who, *_counted(sums)] for who, sums in value.items()]),
            Text(
                "A cached call was paid for by an earlier job and has no tokens and no cost here; what came from the "
                f"store costs nothing. The jobs took {seconds(total)} in all.",
                "small",
            ),
            *_latency_blocks(latencies(jobs.systems, jobs.records)),
        ]
        if stages := stage_seconds(jobs.records):
            rows: list[list[Cell]] = [[stage, Num(time, "seconds")] for stage, time in stages.items()]
            said = Text("A stage whose output was in the store took the time of reading it.", "small")
            grid = Grid("Seconds by stage", ["Stage", "Time"], rows)
            blocks.append(Fold("Seconds by stage, over all jobs", [said, grid]))
        of_jobs = [
            [job["system"], str(job["n_tokens"]), *_counted(job), Num(job["seconds"], "seconds")]
            for job in costs_of_jobs(jobs.systems, jobs.records)
        ]
        columns: Heads = ["System", "N", *_COUNTS, "Time"]
        blocks.append(Fold("By job", [Grid("Cost by job", columns, of_jobs)]))
        return Shown([Section("Cost", blocks)], cards=[_card(value)])


def _counted(sums: Mapping[str, float]) -> list[Num]:
    return [Num(sums[name], "usd" if name == "cost_usd" else "whole") for name in COUNTED]


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
            "answering: the median, and below it the 95th percentile, which one question in twenty exceeds. This is "
            "what a user waits for; the seconds of the jobs are those of a batch."
        ),
        Grid("Latency", columns, cells),
    ]


def costs(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Sums over the jobs by who asked a chat model: {"Answers": {llm_calls, …, cost_usd}}."""
    there = [
        prefix
        for prefix in CALLS
        if prefix in _ALWAYS
        or any(record["metrics"].get(f"{prefix}llm_calls") for record in records)
        or any(record["metrics"].get(f"{prefix}llm_calls_cached") for record in records)
    ]
    return {
        CALLS[prefix]: {
            name: sum(record["metrics"].get(f"{prefix}{name}", 0) for record in records) for name in COUNTED
        }
        for prefix in there
    }


def costs_of_jobs(systems: Sequence[str], records: Sequence[Record]) -> list[dict[str, Any]]:
    """Of every job its seconds, and the sums over all who asked: {system, n_tokens, llm_calls, …}."""
    return [
        {
            "system": system,
            "n_tokens": int(record["n_tokens"]),
            **{name: sum(record["metrics"].get(f"{p}{name}", 0) for p in CALLS) for name in COUNTED},
            "seconds": record["metrics"]["seconds_total"],
        }
        for system, record in zip(systems, records, strict=True)
    ]


def stage_seconds(records: Sequence[Record]) -> dict[str, float]:
    """Seconds of every stage over all jobs, the longest first; those under a tenth of a second are left out.

    A stage that came from the store took the time of reading it.
    """
    sums: dict[str, float] = {}
    for record in records:
        for name, value in record["metrics"].items():
            stage = name.removeprefix("seconds_")
            if name != stage and stage not in _NO_STAGES:
                sums[stage] = sums.get(stage, 0.0) + value
    return {stage: s for stage, s in sorted(sums.items(), key=lambda item: -item[1]) if s >= 0.1}


def latencies(systems: Sequence[str], records: Sequence[Record]) -> list[dict[str, Any]]:
    """Of every job that measured it: {system, n_tokens, topics, stages: {name: (median, 95th percentile)}}.

    The stages are in the order of the job, `total` is the last.
    """
    return [
        {
            "system": system,
            "n_tokens": int(record["n_tokens"]),
            "topics": int(record["metrics"]["latency_topics"]),
            "stages": dict(_percentiles(record["metrics"])),
        }
        for system, record in zip(systems, records, strict=True)
        if "latency_topics" in record["metrics"]
    ]


def _percentiles(metrics: Mapping[str, float]) -> Iterator[tuple[str, tuple[float, float]]]:
    names = [n.removeprefix("latency_").removesuffix("_p50") for n in metrics if n.endswith("_p50")]
    for name in sorted(names, key=lambda name: name == "total"):
        yield name, (metrics[f"latency_{name}_p50"], metrics[f"latency_{name}_p95"])
