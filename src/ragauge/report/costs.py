"""What the section on cost shows: calls and money by who asked, seconds by stage, and latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragauge.contract.groups import CALLS

COUNTED = ("llm_calls", "llm_calls_cached", "prompt_tokens", "completion_tokens", "cost_usd")
_ALWAYS = ("", "judge_")  # answers and verdicts are shown where nobody was asked, too
_NO_STAGES = ("total", "made_chunks", "made_index")

Record = Mapping[str, Any]


def costs(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Sums over the jobs by who asked a chat model: {"Answers": {llm_calls, …, cost_usd}}."""
    there = [
        prefix
        for prefix in CALLS
        if prefix in _ALWAYS or any(record["metrics"].get(f"{prefix}llm_calls") for record in records)
        or any(record["metrics"].get(f"{prefix}llm_calls_cached") for record in records)
    ]  # fmt: skip
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
