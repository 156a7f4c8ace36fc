"""A sweep's finished jobs, read from its folder: their records, their outcomes, and what tells them apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import in_order
from ragauge.contract.errors import DataError
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.contract.records import OUTCOMES_FILE, RECORD_FILE


@dataclass(frozen=True)
class Sweep:
    """The finished jobs of a sweep in one experiment: their records, and their outcomes in one frame.

    `outcomes` has a column `system`: what the sweep varied but for n_tokens, so one line in a chart.
    """

    sweep_id: str
    experiment: str
    records: list[dict[str, Any]]
    failed: list[dict[str, Any]]
    outcomes: pd.DataFrame

    @property
    def answer_measures(self) -> list[AnswerMeasureInfo]:
        """The answer measures of the jobs, each once."""
        return in_order(record.get("answer_measures", ()) for record in self.records)

    @property
    def n_tokens(self) -> int:
        """The largest budget that every system was judged at (the largest of all if there is none)."""
        budgets = [set(rows["n_tokens"]) for _, rows in self.outcomes.groupby("system")]
        return int(max(set.intersection(*budgets) or set.union(*budgets)))


def load(folder: Path) -> list[Sweep]:
    """What a sweep's folder holds, by experiment; an experiment without a finished job is left out."""
    return by_experiment(records_in(folder))


def by_experiment(records: Sequence[dict[str, Any]]) -> list[Sweep]:
    """The jobs' records by experiment, with their outcomes; without those where no job finished."""
    found = []
    for experiment in dict.fromkeys(r["experiment"] for r in records):
        of_experiment = [r for r in records if r["experiment"] == experiment]
        finished = [r for r in of_experiment if r["status"] == "FINISHED"]
        failed = [r for r in of_experiment if r["status"] == "FAILED"]
        if finished:
            sweep_id = str(finished[0]["sweep_id"])
            found.append(Sweep(sweep_id, experiment, finished, failed, _outcomes(finished)))
    return found


def records_in(folder: Path) -> list[dict[str, Any]]:
    """What the jobs in a sweep's folder left in `job.json`, by number; DataError where there is none."""
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder; give a sweep's folder, such as multirun/<date>/<time>")
    files = sorted(folder.glob(f"*/{RECORD_FILE}"))
    if not files:
        raise DataError(f"{folder} holds no finished job (no */{RECORD_FILE})")
    records = [{**json.loads(f.read_text(encoding="utf-8")), "folder": str(f.parent)} for f in files]
    return sorted(records, key=lambda record: record["number"])


def _outcomes(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    outcomes = pd.concat(
        [
            pd.read_parquet(Path(record["folder"]) / OUTCOMES_FILE).assign(system=system)
            for record, system in zip(records, systems_of(records), strict=True)
        ],
        ignore_index=True,
    )
    if "judged" in outcomes:  # there may be jobs that judged all topics beside those that judged a sample
        outcomes["judged"] = outcomes["judged"].ne(False)
        outcomes["stratum"] = outcomes["stratum"].fillna(0)
    return outcomes


def system_names(overrides: Sequence[Sequence[str]]) -> list[str]:
    """What tells jobs apart but for n_tokens: the values of the overrides that differ between them."""
    chosen = [dict(o.split("=", 1) for o in job if "=" in o) for job in overrides]
    keys = list(dict.fromkeys(k for job in chosen for k in job if k != "n_tokens"))
    varied = [k for k in keys if len({job.get(k) for job in chosen}) > 1]
    if not varied:
        varied = [k for k in keys if k == "retriever"]
    return [
        " · ".join(
            str(job.get(k, "default")) if "." not in k else f"{k.lstrip('+')}={job.get(k, 'default')}"
            for k in varied
        )
        or "all"
        for job in chosen
    ]


def systems_of(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The system of every job of a sweep, in their order."""
    return system_names([record["overrides"] for record in records])
