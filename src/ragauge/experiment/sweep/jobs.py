"""A sweep's finished jobs, read from its folder: their groups, records, outcomes, what tells them apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import in_order
from ragauge.contract.errors import DataError
from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.contract.records import OUTCOMES_FILE, RECORD_FILE, refuse_trainings
from ragauge.experiment.sweep.grouping import closest, divide

_SETTINGS = ("seed", "bootstrap", "estimate")  # of the pooled estimates


@dataclass(frozen=True)
class Sweep:
    """The comparable finished jobs of a sweep in one experiment: their records, and all outcomes in a frame.

    `outcomes` has a column `system`: what the sweep varied but for n_tokens, so one line in a chart. `group`
    tells these jobs from the sweep's others, which are not comparable with them; "" where there are none.
    `dataset` names the topics; groups of equal `means` differ in these alone
    (`ragauge.experiment.sweep.grouping`).
    """

    sweep_id: str
    experiment: str
    records: list[dict[str, Any]]
    failed: list[dict[str, Any]]
    outcomes: pd.DataFrame
    group: str = ""
    dataset: str = ""
    means: Hashable = None

    @property
    def answer_measures(self) -> list[AnswerMeasureInfo]:
        """The answer measures of the jobs, each once."""
        return in_order(record.get("answer_measures", ()) for record in self.records)

    @property
    def n_tokens(self) -> int:
        """The largest budget that every system was judged at (the largest of all if there is none)."""
        budgets = [set(rows["n_tokens"]) for _, rows in self.outcomes.groupby("system")]
        return int(max(set.intersection(*budgets) or set.union(*budgets)))

    @property
    def notes(self) -> list[str]:
        """Sentences on settings of the estimates that differ between the jobs; the first job's are used."""
        told = []
        for key in _SETTINGS:
            values = list(dict.fromkeys(json.dumps(record[key]) for record in self.records))
            if len(values) > 1:
                shown = " and ".join(value.replace('"', "") for value in values)
                told.append(f"The jobs have {key} {shown}: what is pooled takes the first.")
        return told


def load(folder: Path) -> list[Sweep]:
    """What a sweep's folder holds, by experiment and group; only experiments in which a job finished."""
    return by_experiment(records_in(folder))


def by_experiment(records: Sequence[dict[str, Any]]) -> list[Sweep]:
    """The groups of comparable jobs of each experiment, with their outcomes; none where no job finished."""
    found = []
    for experiment in dict.fromkeys(r["experiment"] for r in records):
        of_experiment = [r for r in records if r["experiment"] == experiment]
        finished = [r for r in of_experiment if r["status"] == "FINISHED"]
        failed = [r for r in of_experiment if r["status"] == "FAILED"]
        if finished:
            found += grouped(str(finished[0]["sweep_id"]), experiment, finished, failed, _read)
    return found


def grouped(
    sweep_id: str,
    experiment: str,
    finished: Sequence[dict[str, Any]],
    failed: Sequence[dict[str, Any]],
    read: Callable[[dict[str, Any]], pd.DataFrame],
) -> list[Sweep]:
    """The jobs of one experiment, a sweep for each group of comparable ones; `read` gives a job's outcomes.

    A failed job stands with the group that its settings are closest to. Raises DataError where a qid is not
    the same topic in all jobs of a group.
    """
    groups = divide(finished)
    places = [closest(record, groups) for record in failed]
    found = []
    for place, group in enumerate(groups):
        outcomes = _outcomes(group.records, read)
        _check_same_topics(outcomes, group.records)
        own = [record for record, at in zip(failed, places, strict=True) if at == place]
        found.append(Sweep(sweep_id, experiment, group.records, own, outcomes, group.name, group.dataset, group.means))
    return found


def experiments(sweeps: Sequence[Sweep]) -> list[list[Sweep]]:
    """The groups of each experiment."""
    names = dict.fromkeys(sweep.experiment for sweep in sweeps)
    return [[sweep for sweep in sweeps if sweep.experiment == name] for name in names]


def records_in(folder: Path) -> list[dict[str, Any]]:
    """What the jobs in a sweep's folder left in `job.json`, by number; DataError where there is none."""
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder; give a sweep's folder, such as multirun/<date>/<time>")
    files = sorted(folder.glob(f"*/{RECORD_FILE}"))
    if not files:
        raise DataError(f"{folder} holds no finished job (no */{RECORD_FILE})")
    records = [{**json.loads(f.read_text(encoding="utf-8")), "folder": str(f.parent)} for f in files]
    refuse_trainings(records, folder)
    return sorted(records, key=lambda record: record["number"])


def _read(record: Mapping[str, Any]) -> pd.DataFrame:
    return pd.read_parquet(Path(record["folder"]) / OUTCOMES_FILE)


def _outcomes(records: Sequence[dict[str, Any]], read: Callable[[dict[str, Any]], pd.DataFrame]) -> pd.DataFrame:
    outcomes = pd.concat(
        [read(record).assign(system=s) for record, s in zip(records, systems_of(records), strict=True)],
        ignore_index=True,
    )
    if "judged" in outcomes:  # there may be jobs that judged all topics beside those that judged a sample
        outcomes["judged"] = outcomes["judged"].ne(False)
        outcomes["stratum"] = outcomes["stratum"].fillna(0)
    return outcomes


def _check_same_topics(outcomes: pd.DataFrame, records: Sequence[Mapping[str, Any]]) -> None:
    """DataError where a qid has two questions or two reference answers."""
    for column in (c for c in ("query", "answer_reference") if c in outcomes):
        texts = outcomes[column].fillna("")
        other = texts != texts.groupby(outcomes["qid"]).transform("first")
        if other.any():
            qid = outcomes.loc[other, "qid"].iloc[0]
            said = texts[outcomes["qid"] == qid].unique()
            raise DataError(
                f"qid {qid!r} is not the same topic in all {len(records)} jobs of one dataset_digest "
                f"({records[0]['name']} and others): {column} is {said[0][:60]!r} and {said[1][:60]!r}"
            )


def system_names(overrides: Sequence[Sequence[str]]) -> list[str]:
    """What tells jobs apart but for n_tokens: the values of the overrides that differ between them."""
    chosen = [dict(o.split("=", 1) for o in job if "=" in o) for job in overrides]
    keys = list(dict.fromkeys(k for job in chosen for k in job if k != "n_tokens"))
    varied = [k for k in keys if len({job.get(k) for job in chosen}) > 1]
    if not varied:
        varied = [k for k in keys if k == "retriever"]
    return [
        " · ".join(
            str(job.get(k, "default"))
            if "." not in k or k == "recorded.system"
            else f"{k.lstrip('+')}={job.get(k, 'default')}"
            for k in varied
        )
        or "all"
        for job in chosen
    ]


def systems_of(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The system of every job of a sweep, in their order."""
    return system_names([record["overrides"] for record in records])
