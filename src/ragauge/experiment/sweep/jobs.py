"""A sweep's finished jobs, read from its folder: their groups, records and outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract.errors import DataError
from ragauge.contract.jobs import Jobs, system_names, systems_of
from ragauge.contract.records import OUTCOMES_FILE, RECORD_FILE, read_records, refuse_trainings
from ragauge.experiment.sweep.grouping import closest, divide


def load(folder: Path) -> list[Jobs]:
    """What a sweep's folder holds, by experiment and group; only experiments in which a job finished."""
    return by_experiment(records_in(folder))


def by_experiment(records: Sequence[dict[str, Any]]) -> list[Jobs]:
    """The groups of comparable jobs of each experiment, with their outcomes; none where no job finished."""
    found = []
    for experiment in dict.fromkeys(r["experiment"] for r in records):
        of_experiment = [r for r in records if r["experiment"] == experiment]
        finished = [r for r in of_experiment if r["status"] == "FINISHED"]
        failed = [r for r in of_experiment if r["status"] == "FAILED"]
        if finished:
            found += grouped(str(finished[0]["sweep_id"] or finished[0]["name"]), experiment, finished, failed, _read)
    return found


def grouped(
    sweep_id: str,
    experiment: str,
    finished: Sequence[dict[str, Any]],
    failed: Sequence[dict[str, Any]],
    read: Callable[[dict[str, Any]], pd.DataFrame],
) -> list[Jobs]:
    """The jobs of one experiment, a sweep for each group of comparable ones; `read` gives a job's outcomes.

    A failed job stands with the group that its settings are closest to. Raises DataError where a qid is not
    the same topic in all jobs of a group.
    """
    groups = divide(finished)
    places = [closest(record, groups) for record in failed]
    found = []
    for place, group in enumerate(groups):
        own = [record for record, at in zip(failed, places, strict=True) if at == place]
        # Failed jobs have a say in what was varied: of two systems the one that finished keeps its name.
        jobs = [*group.records, *(record for record in own if record["overrides"])]
        names = dict(zip(map(id, jobs), system_names([job["overrides"] for job in jobs]), strict=True))
        records = [{**record, "system": names[id(record)]} for record in group.records]
        own = [{**record, "system": names.get(id(record), record["name"])} for record in own]
        outcomes = _outcomes(records, read)
        _check_same_topics(outcomes, records)
        found.append(Jobs(sweep_id, experiment, records, own, outcomes, group.name, group.dataset, group.means))
    return [replace(one, siblings=[other for other in found if other is not one]) for one in found]


def experiments(sweeps: Sequence[Jobs]) -> list[list[Jobs]]:
    """The groups of each experiment."""
    names = dict.fromkeys(sweep.experiment for sweep in sweeps)
    return [[sweep for sweep in sweeps if sweep.experiment == name] for name in names]


def records_in(folder: Path) -> list[dict[str, Any]]:
    """The records of the jobs in a folder, as `read_records` gives them; DataError where there is none."""
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder; give a sweep's folder, such as multirun/<date>/<time>")
    records = read_records(folder)
    if not records:
        raise DataError(f"{folder} holds no finished job (no {RECORD_FILE}, no */{RECORD_FILE} of the latest attempt)")
    refuse_trainings(records, folder)
    return records


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
