"""The effect of each part of a system: ablation over the sweep's grid, gain over the LLM alone, chunk sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import besides_rankings, column_label
from ragauge.contract.finding import (
    Block,
    Cell,
    Col,
    Finding,
    Found,
    Founds,
    Grid,
    Heading,
    Heads,
    Num,
    Section,
    Shown,
    Text,
)
from ragauge.contract.jobs import Jobs, settings_of, systems_of
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.metrics import METRICS, capitalised
from ragauge.contract.naming import in_short
from ragauge.contract.record import JobRecord
from ragauge.findings.tables import number
from ragauge.plugins.parts.ablation import NONE, ablation, gains

_RECORDED = "recorded"  # root key that picks a recorded system: its contexts and its answers
# Where nothing is retrieved, none of these changes an answer.
_OF_RETRIEVAL = ("chunker", "embedder", "rewriter", "retriever", "reranker", "expander", "compressor", "order")

Settings = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Brought:
    """ablation: from `parts.ablation`; gains: over the LLM alone; chunk_sizes: scores by chunks."""

    ablation: pd.DataFrame
    gains: pd.DataFrame | None
    chunk_sizes: pd.DataFrame | None


class Parts(Finding):
    """The gain of each option over another of its part, all else equal."""

    name = "parts"
    after = "ir_score"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """`Brought`; None without systems that differ in one part alone, from the LLM alone, or in chunks."""
        value = Brought(ablation_of(jobs), gain_of_retrieval(jobs), chunk_sizes(jobs))
        known = {"ablation": value.ablation, "gain_over_llm_only": value.gains, "chunk_sizes": value.chunk_sizes}
        tables = {name: frame for name, frame in known.items() if frame is not None and len(frame)}
        return Found(value, tables=tables) if tables else None

    def show(self, jobs: Jobs, value: Brought, found: Founds) -> Shown:
        """Differences with intervals."""
        blocks: list[Block] = []
        if len(value.ablation):
            blocks += _ablation_blocks(jobs, value.ablation)
        if value.gains is not None and len(value.gains):
            blocks += _gain_blocks(jobs, value.gains)
        if value.chunk_sizes is not None:
            blocks += _chunk_blocks(value.chunk_sizes)
        return Shown([Section("What each part brings", blocks)])


def _ablation_blocks(jobs: Jobs, frame: pd.DataFrame) -> list[Block]:
    measures = _measures(frame, jobs.answer_measures)
    titles = (Col(title) for title, _ in measures.values())
    columns: Heads = ["Part", "<Option", "<Against", *titles, "Settings / averaged over"]
    rows: list[list[Cell]] = [
        [*map(str, key[:3]), *_cells(of, measures), str(key[3])]
        for key, of in wide(frame, ["factor", "option", "base", "settings"]).items()
    ]
    return [
        Text(
            f"The gain of each option over the base of its part, all else equal, at N = {jobs.n_tokens} tokens. It is "
            "the difference by topic, averaged over the settings of the other parts at which the sweep has both. An "
            "interval that holds 0 says that these topics do not show a difference; each "
            "interval holds by itself, so of twenty rows expect one to miss."
        ),
        Grid("What each part brings", columns, rows),
        Text(
            "The differences hold for this grid: where a part helps some settings and harms others, the average says "
            "neither. Systems that retrieve nothing count for the retriever and the LLM alone.",
            "small",
        ),
    ]


def _gain_blocks(jobs: Jobs, frame: pd.DataFrame) -> list[Block]:
    measures = _measures(frame, jobs.answer_measures)
    columns: Heads = ["System", *(Col(title.replace(", points", "")) for title, _ in measures.values())]
    rows: list[list[Cell]] = [
        [str(key[0]), *_cells(of, measures)] for key, of in wide(frame, ["system", "base"]).items()
    ]
    return [
        Heading("Gain over the LLM alone"),
        Text(
            "Each system less the same LLM without any retrieval, on the same topics, in percentage points. Where "
            "right answers rise little, the LLM knew them, or the retrieval does not bring them."
        ),
        Grid("Gain over the LLM alone", columns, rows),
    ]


def _chunk_blocks(frame: pd.DataFrame) -> list[Block]:
    grid = sorted(set(frame["n_tokens"]))
    rows: list[list[Cell]] = []
    for (chunks, system), of in frame.groupby(["chunks", "system"], sort=False):
        first, scores = of.iloc[0], dict(zip(of["n_tokens"], of["ir_score"], strict=True))
        about = [Num(first["n_chunks"], "whole"), Num(first["seconds"], "seconds")]
        rows.append([str(chunks), str(system) or "all", *about, *(Num(scores.get(n)) for n in grid)])
    columns = ("Chunks", "<System", "Number", "Index")
    return [
        Heading("Chunk sizes"),
        Text(
            "IR score at each N by how the documents were cut. Small chunks fill a small budget with what was asked "
            "for; large ones keep evidence whole that belongs together. The time is what chunking and indexing took "
            "when they were made, vectors that were known by then not counted."
        ),
        Grid("Chunk sizes", [*columns, *(Col(f"N = {n}") for n in grid)], rows),
    ]


def wide(frame: pd.DataFrame, keys: Sequence[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """{values of `keys`: {measure: the row}} in the order of the frame."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in frame.to_dict("records"):
        found.setdefault(tuple(row[key] for key in keys), {})[row["measure"]] = row
    return found


def _cells(of: Mapping[str, Any], measures: Mapping[str, tuple[str, bool]]) -> list[Num]:
    return [
        number(of.get(name, {}), "difference", "points" if points else "signed")
        for name, (_, points) in measures.items()
    ]


def _measures(frame: pd.DataFrame, answers: Sequence[AnswerMeasureInfo]) -> dict[str, tuple[str, bool]]:
    """{measure: its heading, and whether it is shown in points}, in frame order."""
    infos = {info.name: info for info in answers}
    found = {}
    for name in dict.fromkeys(frame["measure"]):
        info = infos.get(name)
        share = name != "ir_score" if info is None else info.unit == "share"
        title = capitalised(METRICS[name].difference) if info is None else column_label(info)
        found[name] = (title + (", points" if info is not None and share else ""), share)
    return found


def ablation_of(jobs: Jobs) -> pd.DataFrame:
    """The ablation over the grid at its common n_tokens."""
    settings = settings_of(jobs.records)
    idle = {
        system: [f for f in settings[system] if f != "retriever" and _group(f) in _OF_RETRIEVAL]
        for system in _llm_only(jobs.records)
    }
    return ablation(_at_n(jobs), settings, idle)


def gain_of_retrieval(jobs: Jobs) -> pd.DataFrame | None:
    """The gain of each system over the same LLM without retrieval; None if every job retrieves."""
    settings, alone = settings_of(jobs.records), _llm_only(jobs.records)
    bases = {
        system: base
        for system in settings
        if system not in alone and (base := _llm_alone(settings, system, alone)) is not None
    }
    if not bases:
        return None
    return gains(_at_n(jobs), bases, answers=besides_rankings(jobs.answer_measures))


def _at_n(jobs: Jobs) -> pd.DataFrame:
    """The outcomes at the common n_tokens; those of an LLM alone, without a budget, at its largest."""
    rows, alone = jobs.outcomes, set(_llm_only(jobs.records))
    at_n = rows[rows["n_tokens"] == jobs.n_tokens]
    others = rows[rows["system"].isin(alone - set(at_n["system"]))]
    largest = others[others["n_tokens"] == others.groupby("system")["n_tokens"].transform("max")]
    return pd.concat([at_n, largest], ignore_index=True) if len(largest) else at_n


def _llm_only(records: Sequence[JobRecord]) -> list[str]:
    """The systems that retrieve nothing: by their config, or recorded ones without any context."""
    named = list(zip(systems_of(records), records, strict=True))
    retrieving = {system for system, record in named if not _retrieves_nothing(record)}
    return [system for system in dict.fromkeys(name for name, _ in named) if system not in retrieving]


def _retrieves_nothing(record: JobRecord) -> bool:
    chosen = record.choices.get("retriever")
    return chosen == NONE or (chosen == _RECORDED and record.metrics.get("context_tokens") == 0)


def _llm_alone(settings: Settings, system: str, alone: Sequence[str]) -> str | None:
    """The system without retrieval with the same LLM; the most similar of several."""

    def rest(name: str) -> dict[str, str]:
        # Recorded systems are taken to share one LLM: their file says nothing of it.
        without = (*_OF_RETRIEVAL, _RECORDED)
        return {f: option for f, option in settings[name].items() if _group(f) not in without}

    def shared(name: str) -> int:
        return len(set(settings[name].items()) & set(settings[system].items()))

    return max((name for name in alone if rest(name) == rest(system)), key=shared, default=None)


def _group(factor: str) -> str:
    return factor.partition(".")[0]


def chunk_sizes(jobs: Jobs) -> pd.DataFrame | None:
    """IR score by chunks and budget: [chunks, system, n_tokens, ir_score, n_chunks, seconds].

    `chunks` names the chunker and its settings as far as they vary, `system` the rest of the system;
    `seconds` is what chunking and indexing took when they were made. Systems that retrieve nothing are left
    out. None where no chunker varies.
    """
    settings, alone = settings_of(jobs.records), set(_llm_only(jobs.records))
    varied = list(dict.fromkeys(f for own in settings.values() for f in own if _group(f) == "chunker"))
    if not varied:
        return None
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for system, record in zip(jobs.systems, jobs.records, strict=True):
        if system in alone:
            continue
        own, metrics = settings[system], record.metrics
        made = [metrics.get(f"seconds_made_{stage}") for stage in ("chunks", "index")]
        known = {
            "chunks": _label(record, own, varied),
            "system": in_short({f: v for f, v in own.items() if f not in varied}, settings.values()),
            "n_chunks": metrics.get("n_chunks"),
            "seconds": None if None in made else sum(filter(None, made)),
        }
        for n, score in record.ir_score_at_n.items():
            rows[system, n] = {**known, "n_tokens": n, "ir_score": float(score)}
    columns = ["chunks", "system", "n_tokens", "ir_score", "n_chunks", "seconds"]
    found = pd.DataFrame(rows.values(), columns=columns)
    return found if len(found) else None


def _label(record: JobRecord, own: Mapping[str, str], varied: Sequence[str]) -> str:
    dotted = [f"{f.partition('.')[2]}={own[f]}" for f in varied if "." in f and f in own]
    return ", ".join([str(record.choices.get("chunker", "?")), *dotted])
