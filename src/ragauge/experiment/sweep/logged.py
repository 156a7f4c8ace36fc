"""A sweep, or a single job, rebuilt from what its MLflow runs logged: for a machine without its folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ragauge.contract import comparable
from ragauge.contract.answer_measures import from_tags
from ragauge.contract.errors import DataError
from ragauge.contract.groups import GROUPS
from ragauge.contract.jobs import Jobs
from ragauge.contract.progress import progress
from ragauge.experiment.setup.trust import logged_yaml
from ragauge.experiment.slicing import WEIGHTS_TAG
from ragauge.experiment.sweep.jobs import grouped
from ragauge.findings.ir_score import CURVES
from ragauge.track import LoggedRun, Reader

_TABLE, _OVERRIDES = "per_question.json", "config/overrides.yaml"


def find(run_id: str, uri: str) -> Path | list[Jobs]:
    """The folder of the sweep that a run belongs to where it is on this machine; else the sweep's groups.

    `run_id` is that of a sweep's run or of a job's: of a group's run its jobs, of a job's run all jobs of the
    sweep; a job outside any sweep comes as a sweep of one. Raises
    ConfigError where the store or the run is not there, DataError where the runs lack what is needed.
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
        {**_record(run, reader), "experiment": experiment, "tracking_uri": reader.uri, "number": number}
        for number, run in enumerate(runs)
    ]
    finished = [record for record in records if record["status"] == "FINISHED"]
    if not finished:
        raise DataError(f"none of the {len(records)} job(s) of run {runs[0].run_id} finished")
    name = finished[0]["sweep_id"] or finished[0]["run_id"]
    failed = [record for record in records if record["status"] != "FINISHED"]
    with progress(len(finished), "reading runs", "run") as bar:

        def read(record: dict[str, Any]) -> pd.DataFrame:
            bar.update()
            return _outcomes(record, reader)

        return grouped(name, experiment, finished, failed, read)


def _record(run: LoggedRun, reader: Reader) -> dict[str, Any]:
    """What `job.json` holds of a job, as far as its run tells."""
    tags, run_id = run.tags, run.run_id
    finished = run.status == "FINISHED"
    return {
        "run_id": run_id,
        "status": run.status,
        "name": run.name,
        "sweep_id": tags.get("sweep_id"),
        "choices": {group: tags.get(group, "?") for group in GROUPS},
        "overrides": logged_yaml(reader.text(run_id, _OVERRIDES), _OVERRIDES) if finished else [],
        "n_tokens": int(tags["n_tokens"]),
        "seed": int(run.params.get("seed", 0)),
        "bootstrap": int(run.params.get("bootstrap", 1000)),
        "estimate": {
            "features": json.loads(run.params.get("estimate.features", '["ir_score"]')),
            "spline": run.params.get("estimate.spline") == "true",
            "calibrate": run.params.get("estimate.calibrate") == "true",
        },
        "dataset_digest": tags.get("dataset_digest", ""),
        "measured_by": comparable.from_tags(tags),
        "metrics": dict(run.metrics),
        "answer_measures": from_tags(tags),
        "slice_weights": json.loads(tags.get(WEIGHTS_TAG, "{}")),
        **{name: reader.history(run_id, name) if finished else {} for name in CURVES},
        "error": tags.get("error", "no error was recorded"),
    }


def _outcomes(record: dict[str, Any], reader: Reader) -> pd.DataFrame:
    """The rows of the job's table, which hold evidence and context, too, unless there are many topics."""
    rows = reader.table(record["run_id"], _TABLE)
    return rows.astype({"qid": "str", "ir_score": "float64", "label": "Int8"}).assign(
        n_tokens=record["n_tokens"], **record["choices"]
    )
