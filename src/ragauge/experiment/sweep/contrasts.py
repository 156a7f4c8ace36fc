"""What a sweep's grid says of its parts: ablation, gain over the LLM alone, chunk sizes, cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import besides_rankings
from ragauge.contract.groups import GROUPS
from ragauge.estimate.ablation import NONE, ablation, gains
from ragauge.estimate.pareto import frontier
from ragauge.experiment.sweep.jobs import Sweep, systems_of

_RECORDED = "recorded"  # root key that picks a recorded system: its contexts and its answers
# Where nothing is retrieved, none of these changes an answer.
_OF_RETRIEVAL = (
    "chunker",
    "embedder",
    "rewriter",
    "retriever",
    "reranker",
    "expander",
    "compressor",
    "order",
)
_COSTS = {"tokens": "context_tokens", "seconds": "seconds_per_topic", "cost": "cost_usd_per_topic"}
_LATENCY = "latency_total_p50"

Record = Mapping[str, Any]
Settings = dict[str, dict[str, str]]


def settings_of(records: Sequence[Record]) -> Settings:
    """What each system is made of, as far as the jobs differ: {system: {factor: option}}.

    A factor is a config group, or another overridden key (`chunker.size`); never n_tokens.
    """
    pairs = [[override.partition("=") for override in record["overrides"]] for record in records]
    given = [{key.lstrip("+~"): value for key, equals, value in job if equals} for job in pairs]
    keys = dict.fromkeys(k for job in given for k in job if k != "n_tokens" and not k.startswith("hydra."))
    options = {
        key: [
            str(record["choices"].get(key, "?")) if key in GROUPS else job.get(key, "default")
            for record, job in zip(records, given, strict=True)
        ]
        for key in keys
    }
    varied = [key for key, found in options.items() if len(set(found)) > 1]
    return {system: {key: options[key][i] for key in varied} for i, system in enumerate(systems_of(records))}


def ablation_of(sweep: Sweep, n_boot: int, seed: int) -> pd.DataFrame:
    """The ablation over the sweep's grid at its common n_tokens."""
    settings = settings_of(sweep.records)
    idle = {
        system: [f for f in settings[system] if f != "retriever" and _group(f) in _OF_RETRIEVAL]
        for system in _llm_only(sweep.records)
    }
    return ablation(_at_n(sweep), settings, idle, n_boot, seed)


def gain_of_retrieval(sweep: Sweep, n_boot: int, seed: int) -> pd.DataFrame | None:
    """What each system gives over the same LLM without retrieval; None where no job retrieves nothing."""
    settings, alone = settings_of(sweep.records), _llm_only(sweep.records)
    bases = {
        system: base
        for system in settings
        if system not in alone and (base := _llm_alone(settings, system, alone)) is not None
    }
    if not bases:
        return None
    return gains(_at_n(sweep), bases, n_boot, seed, answers=besides_rankings(sweep.answer_measures))


def _at_n(sweep: Sweep) -> pd.DataFrame:
    """The outcomes at the common n_tokens; those of an LLM alone, which has no budget, at any that it has."""
    rows, alone = sweep.outcomes, set(_llm_only(sweep.records))
    at_n = rows[rows["n_tokens"] == sweep.n_tokens]
    others = rows[rows["system"].isin(alone - set(at_n["system"]))]
    largest = others[others["n_tokens"] == others.groupby("system")["n_tokens"].transform("max")]
    return pd.concat([at_n, largest], ignore_index=True) if len(largest) else at_n


def _llm_only(records: Sequence[Record]) -> list[str]:
    """The systems that retrieve nothing: by their config, or recorded ones without any context."""
    named = list(zip(systems_of(records), records, strict=True))
    retrieving = {system for system, record in named if not _retrieves_nothing(record)}
    return [system for system in dict.fromkeys(name for name, _ in named) if system not in retrieving]


def _retrieves_nothing(record: Record) -> bool:
    chosen = record["choices"].get("retriever")
    return chosen == NONE or (chosen == _RECORDED and record["metrics"].get("context_tokens") == 0)


def _llm_alone(settings: Settings, system: str, alone: Sequence[str]) -> str | None:
    """Of the systems that retrieve nothing the one with the same LLM; of several the one most like it."""

    def rest(name: str) -> dict[str, str]:
        # Recorded systems are taken to share one LLM: their file says nothing of it.
        without = (*_OF_RETRIEVAL, _RECORDED)
        return {f: option for f, option in settings[name].items() if _group(f) not in without}

    def shared(name: str) -> int:
        return len(set(settings[name].items()) & set(settings[system].items()))

    return max((name for name in alone if rest(name) == rest(system)), key=shared, default=None)


def _group(factor: str) -> str:
    return factor.partition(".")[0]


def chunk_sizes(sweep: Sweep) -> pd.DataFrame | None:
    """IR score by chunks and budget: [chunks, system, n_tokens, ir_score, n_chunks, seconds].

    `chunks` names the chunker and its settings as far as they vary, `system` the rest of the system;
    `seconds` is what chunking and indexing took when they were made. Systems that retrieve nothing are left
    out. None where no chunker varies.
    """
    settings, alone = settings_of(sweep.records), set(_llm_only(sweep.records))
    varied = list(dict.fromkeys(f for own in settings.values() for f in own if _group(f) == "chunker"))
    if not varied:
        return None
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for system, record in zip(systems_of(sweep.records), sweep.records, strict=True):
        if system in alone:
            continue
        own, metrics = settings[system], record["metrics"]
        made = [metrics.get(f"seconds_made_{stage}") for stage in ("chunks", "index")]
        known = {
            "chunks": _label(record, own, varied),
            "system": " · ".join(v if "." not in f else f"{f}={v}" for f, v in own.items() if f not in varied),
            "n_chunks": metrics.get("n_chunks"),
            "seconds": None if None in made else sum(made),
        }
        for n, score in record["ir_score_at_n"].items():
            rows[system, int(n)] = {**known, "n_tokens": int(n), "ir_score": float(score)}
    columns = ["chunks", "system", "n_tokens", "ir_score", "n_chunks", "seconds"]
    found = pd.DataFrame(rows.values(), columns=columns)
    return found if len(found) else None


def _label(record: Record, own: Mapping[str, str], varied: Sequence[str]) -> str:
    dotted = [f"{f.partition('.')[2]}={own[f]}" for f in varied if "." in f and f in own]
    return ", ".join([str(record["choices"].get("chunker", "?")), *dotted])


def score_against_cost(sweep: Sweep) -> pd.DataFrame:
    """A row per job: [system, n_tokens, measure, score, tokens, seconds, cost, on_tokens, …, latency].

    measure is `correct` where all jobs have verdicts, else `ir_score`; score is that of the job. tokens of
    context, seconds and US dollars are per topic (NaN where a job tells none): seconds are the median of
    `measure_latency` where all jobs have it (`latency` is then true), else of a batch. on_* say whether the
    job is on the Pareto frontier of the score against that cost.
    """
    metrics = [record["metrics"] for record in sweep.records]
    judged = all(m.get("judge_share_missing", 1) < 1 for m in metrics)
    measured = all(_LATENCY in m for m in metrics)
    sources = {**_COSTS, "seconds": _LATENCY if measured else _COSTS["seconds"]}
    table = pd.DataFrame(
        {
            "system": systems_of(sweep.records),
            "n_tokens": [int(record["n_tokens"]) for record in sweep.records],
            "measure": "correct" if judged else "ir_score",
            "score": [float(m.get("correct_share" if judged else "ir_score", "nan")) for m in metrics],
            **{name: [float(m.get(key, "nan")) for m in metrics] for name, key in sources.items()},
        }
    )
    for name in sources:
        table[f"on_{name}"] = frontier(table[name].to_numpy(), table["score"].to_numpy())
    return table.assign(latency=measured)
