"""A sweep's finished jobs from its folder or MLflow: their groups, records and outcomes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd

from ragauge.contract import comparable
from ragauge.contract.answer_measures import from_tags
from ragauge.contract.errors import DataError
from ragauge.contract.families import Families
from ragauge.contract.groups import GROUPS
from ragauge.contract.job_files import OUTCOMES_FILE, OUTSIDE_TAG, read_records, read_table
from ragauge.contract.jobs import Jobs, systems_of
from ragauge.contract.naming import renamed, system_names
from ragauge.contract.progress import progress
from ragauge.contract.record import RECORD_FILE, JobRecord
from ragauge.estimate.clusters import same_clusters
from ragauge.experiment.setup.config import logged_yaml
from ragauge.experiment.slicing import WEIGHTS_TAG
from ragauge.experiment.sweep.grouping import closest, divide
from ragauge.findings.ir_score import CURVES
from ragauge.track import LoggedRun, Reader

_TABLE, _OVERRIDES = "per_question.json", "config/overrides.yaml"  # of a job's MLflow run


def load(folder: Path) -> list[Jobs]:
    """The jobs in a sweep's folder by experiment and group, for experiments with a finished job."""
    return by_experiment(records_in(folder))


def by_experiment(records: Sequence[JobRecord]) -> list[Jobs]:
    """The groups of comparable jobs of each experiment, with outcomes; none without a finished job."""
    found = []
    for experiment in dict.fromkeys(r.experiment for r in records):
        of_experiment = [r for r in records if r.experiment == experiment]
        finished = [r for r in of_experiment if r.is_finished]
        failed = [r for r in of_experiment if r.status == "FAILED"]
        if finished:
            found += grouped(str(finished[0].sweep_id or finished[0].name), experiment, finished, failed, _read)
    return found


def grouped(
    sweep_id: str,
    experiment: str,
    finished: Sequence[JobRecord],
    failed: Sequence[JobRecord],
    read: Callable[[JobRecord], pd.DataFrame],
) -> list[Jobs]:
    """One experiment's jobs, as a sweep per group of comparable ones; `read` returns a job's outcomes.

    A failed job stands with the group that its settings are closest to. Raises DataError where a qid is not
    the same topic in all jobs of a group.
    """
    groups = divide(finished)
    places = [closest(record, groups) for record in failed]
    found = []
    for place, group in enumerate(groups):
        own = [record for record, at in zip(failed, places, strict=True) if at == place]
        # Failed jobs have a say in what was varied: of two systems the one that finished keeps its name.
        jobs = [*group.records, *(record for record in own if record.overrides)]
        named = renamed(system_names([job.overrides for job in jobs]), finished[0].names)
        names = dict(zip(map(id, jobs), named, strict=True))
        records = [replace(record, system=names[id(record)]) for record in group.records]
        own = [replace(record, system=names.get(id(record), record.name)) for record in own]
        outcomes = _outcomes(records, read)
        _check_same_topics(outcomes, records)
        found.append(Jobs(sweep_id, experiment, records, own, outcomes, group.name, group.dataset, group.means))
    return [replace(one, siblings=[other for other in found if other is not one]) for one in found]


def experiments(sweeps: Sequence[Jobs]) -> list[list[Jobs]]:
    """The groups of each experiment."""
    names = dict.fromkeys(sweep.experiment for sweep in sweeps)
    return [[sweep for sweep in sweeps if sweep.experiment == name] for name in names]


def records_in(folder: Path) -> list[JobRecord]:
    """`read_records` of a folder; DataError without any record."""
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder; give a sweep's folder, such as multirun/<date>/<time>")
    records = read_records(folder)
    if not records:
        raise DataError(f"{folder} holds no finished job (no {RECORD_FILE}, no */{RECORD_FILE} of the latest attempt)")
    return records


def _read(record: JobRecord) -> pd.DataFrame:
    try:
        return read_table(record.folder, OUTCOMES_FILE)
    except FileNotFoundError:
        told = f"{record.folder} holds no {OUTCOMES_FILE}: its job did not finish, or the file was deleted"
        raise DataError(told) from None


def _outcomes(records: Sequence[JobRecord], read: Callable[[JobRecord], pd.DataFrame]) -> pd.DataFrame:
    outcomes = pd.concat(
        [read(record).assign(system=s) for record, s in zip(records, systems_of(records), strict=True)],
        ignore_index=True,
    )
    if "judged" in outcomes:  # there may be jobs that judged all topics beside those that judged a sample
        outcomes["judged"] = outcomes["judged"].ne(False)
        outcomes["stratum"] = outcomes["stratum"].fillna(0)
    return same_clusters(outcomes)


def _check_same_topics(outcomes: pd.DataFrame, records: Sequence[JobRecord]) -> None:
    """DataError if a qid has two questions or two reference answers."""
    for column in (c for c in ("query", "answer_reference") if c in outcomes):
        texts = outcomes[column].fillna("")
        other = texts != texts.groupby(outcomes["qid"]).transform("first")
        if other.any():
            qid = outcomes.loc[other, "qid"].iloc[0]
            said = texts[outcomes["qid"] == qid].unique()
            raise DataError(
                f"qid {qid!r} is not the same topic in all {len(records)} jobs of one dataset_digest "
                f"({records[0].name} and others): {column} is {said[0][:60]!r} and {said[1][:60]!r}"
            )


def find(run_id: str, uri: str) -> Path | list[Jobs]:
    """The folder of a run's sweep if it is on this machine, else the sweep's groups.

    `run_id` is that of a sweep's run or of a job's. A group's run gives its jobs, a job's run all jobs of the sweep,
    and a job outside any sweep a sweep of one. Raises ConfigError where the store or the run is not there, DataError
    where the runs lack what is needed.
    """
    reader = Reader(uri)
    run = reader.run(run_id)
    sweep_id = run.tags.get("sweep_id")
    if run.tags.get("role") == "training":
        raise DataError(f"run {run_id} ({run.name}) is a training: give a job or a sweep")
    if "role" not in run.tags:
        raise DataError(f"run {run_id} has no tag role=job or role=sweep, so it is not one of ragauge's")
    if sweep_id is None:  # a job outside of any sweep, or of an attempt at it that a later one supersedes
        return _rebuilt(reader.jobs(run) if run.tags["role"] == "sweep" else [run], reader)
    pooled = reader.search({"sweep_id": sweep_id, "role": "sweep"}, run.experiment_id)
    folders = [Path(r.params["folder"]) for r in pooled if "folder" in r.params]
    for folder in folders:
        if any(folder.glob("*/job.json")):
            return folder
    jobs = reader.jobs(run)
    if not jobs:
        gone = ", ".join(map(str, folders)) or "not recorded"
        raise DataError(f"sweep {sweep_id}: its folder is gone ({gone}), and MLflow holds no run of its jobs")
    return _rebuilt(jobs, reader)


def _rebuilt(runs: Sequence[LoggedRun], reader: Reader) -> list[Jobs]:
    experiment = runs[0].experiment
    records = [
        replace(_logged_record(run, reader), experiment=experiment, number=number) for number, run in enumerate(runs)
    ]
    finished = [record for record in records if record.is_finished]
    if not finished:
        raise DataError(f"none of the {len(records)} job(s) of run {runs[0].run_id} finished")
    name = str(finished[0].sweep_id or finished[0].run_id)
    failed = [record for record in records if not record.is_finished]
    with progress(len(finished), "reading runs", "run") as bar:

        def read(record: JobRecord) -> pd.DataFrame:
            bar.update()
            return _logged_outcomes(record, reader)

        return grouped(name, experiment, finished, failed, read)


def _logged_record(run: LoggedRun, reader: Reader) -> JobRecord:
    """The content of a job's `job.json`, as far as its run holds it."""
    tags, run_id = run.tags, run.run_id
    finished = run.status == "FINISHED"
    record = JobRecord(
        run_id=run_id,
        experiment=run.experiment,
        tracking_uri=reader.uri,
        number=0,
        status=run.status,
        name=run.name,
        exit_code=0 if finished else 1,
        attempt=None,
        sweep_id=tags.get("sweep_id"),
        choices={group: tags.get(group, "?") for group in GROUPS},
        overrides=logged_yaml(reader.text(run_id, _OVERRIDES), _OVERRIDES) if finished else [],
        written_in="",
        n_tokens=int(tags["n_tokens"]),
        seed=int(run.params.get("seed", 0)),
        bootstrap=int(run.params.get("bootstrap", 1000)),
        estimate={
            "features": json.loads(run.params.get("estimate.features", '["ir_score"]')),
            "spline": run.params.get("estimate.spline") == "true",
            "calibrate": run.params.get("estimate.calibrate") == "true",
        },
        cluster=run.params.get("cluster"),
        report=asdict(Families.of_params(run.params)),
        dataset_digest=tags.get("dataset_digest", ""),
        measured_by=comparable.from_tags(tags),
        metrics=dict(run.metrics),
        answer_measures=from_tags(tags),
        outside=list(filter(None, tags.get(OUTSIDE_TAG, "").split(","))),
        slice_weights=json.loads(tags.get(WEIGHTS_TAG, "{}")),
        error=tags.get("error", ""),
    )
    record.take({name: reader.history(run_id, name) for name in CURVES} if finished else {})
    return record


def _logged_outcomes(record: JobRecord, reader: Reader) -> pd.DataFrame:
    """The rows of the job's table, with evidence and context unless there are many topics."""
    rows = reader.table(record.run_id, _TABLE)
    return rows.astype({"qid": "str", "ir_score": "float64", "label": "Int8"}).assign(
        n_tokens=record.n_tokens, **record.choices
    )
