"""A sweep, or a single job, rebuilt from what its MLflow runs logged: for a machine without its folder."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge.config import GROUPS
from ragauge.errors import ConfigError, DataError
from ragauge.progress import progress
from ragauge.sweep import Sweep, system_names
from ragauge.track import open_client

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_TABLE, _OVERRIDES = "per_question.json", "config/overrides.yaml"


def find(run_id: str, uri: str) -> Path | Sweep:
    """The folder of the sweep that a run belongs to where it is on this machine; else the sweep itself.

    `run_id` is that of a sweep's run or of a job's; a job outside any sweep comes as a sweep of one. Raises
    ConfigError where the store or the run is not there, DataError where the runs lack what is needed.
    """
    client = open_client(uri)
    run = _run(client, run_id, uri)
    sweep_id = run.data.tags.get("sweep_id")
    if "role" not in run.data.tags:
        raise DataError(f"run {run_id} has no tag role=job or role=sweep, so it is not one of ragauge's")
    if sweep_id is None:
        return _rebuilt([run], client, uri)
    pooled = _search(client, run, sweep_id, "sweep")
    folders = [Path(r.data.params["folder"]) for r in pooled if "folder" in r.data.params]
    for folder in folders:
        if any(folder.glob("*/job.json")):
            return folder
    jobs = _search(client, run, sweep_id, "job")
    if not jobs:
        gone = ", ".join(map(str, folders)) or "not recorded"
        raise DataError(f"sweep {sweep_id}: its folder is gone ({gone}), and MLflow holds no run of its jobs")
    return _rebuilt(jobs, client, uri)


def _run(client: MlflowClient, run_id: str, uri: str) -> Run:
    from mlflow.exceptions import MlflowException

    try:
        return client.get_run(run_id)
    except MlflowException as error:
        raise ConfigError(f"MLflow at {uri} holds no run {run_id}") from error


def _search(client: MlflowClient, run: Run, sweep_id: str, role: str) -> list[Run]:
    query = f"tags.sweep_id = '{sweep_id}' and tags.role = '{role}'"
    oldest_first = ["attributes.start_time"]
    return list(
        client.search_runs([run.info.experiment_id], query, order_by=oldest_first, max_results=50_000)
    )


def _rebuilt(runs: Sequence[Run], client: MlflowClient, uri: str) -> Sweep:
    experiment = client.get_experiment(runs[0].info.experiment_id).name
    records = [
        {**_record(run, client), "experiment": experiment, "tracking_uri": uri, "number": number}
        for number, run in enumerate(runs)
    ]
    finished = [record for record in records if record["status"] == "FINISHED"]
    if not finished:
        raise DataError(f"none of the {len(records)} job(s) of run {runs[0].info.run_id} finished")
    systems = system_names([record["overrides"] for record in finished])
    outcomes = []
    with progress(len(finished), "read runs", "run") as bar:
        for record, system in zip(finished, systems, strict=True):
            outcomes.append(_outcomes(record, client).assign(system=system))
            bar.update()
    name = finished[0]["sweep_id"] or finished[0]["run_id"]
    failed = [record for record in records if record["status"] != "FINISHED"]
    return Sweep(name, experiment, finished, failed, pd.concat(outcomes, ignore_index=True))


def _record(run: Run, client: MlflowClient) -> dict[str, Any]:
    """What `job.json` holds of a job, as far as its run tells."""
    import yaml

    tags, run_id = run.data.tags, run.info.run_id
    finished = run.info.status == "FINISHED"
    curve = client.get_metric_history(run_id, "ir_score_at_n") if finished else []
    return {
        "run_id": run_id,
        "status": run.info.status,
        "name": run.info.run_name,
        "sweep_id": tags.get("sweep_id"),
        "choices": {group: tags.get(group, "?") for group in GROUPS},
        "overrides": yaml.safe_load(_artifact(client, run_id, _OVERRIDES)) if finished else [],
        "n_tokens": int(tags["n_tokens"]),
        "seed": int(run.data.params.get("seed", 0)),
        "bootstrap": int(run.data.params.get("bootstrap", 1000)),
        "estimate": {
            "features": json.loads(run.data.params.get("estimate.features", '["ir_score"]')),
            "spline": run.data.params.get("estimate.spline") == "true",
            "calibrate": run.data.params.get("estimate.calibrate") == "true",
        },
        "dataset_digest": tags.get("dataset_digest", ""),
        "metrics": dict(run.data.metrics),
        "ir_score_at_n": {point.step: point.value for point in curve},
        "error": tags.get("error", "no error was recorded"),
    }


def _outcomes(record: dict[str, Any], client: MlflowClient) -> pd.DataFrame:
    """The rows of the job's table, which hold evidence and context, too, unless there are many topics."""
    table = json.loads(_artifact(client, record["run_id"], _TABLE))
    rows = pd.DataFrame(table["data"], columns=table["columns"])
    return rows.astype({"qid": "str", "ir_score": "float64", "label": "Int8"}).assign(
        n_tokens=record["n_tokens"], **record["choices"]
    )


def _artifact(client: MlflowClient, run_id: str, name: str) -> str:
    """The text of an artifact."""
    from mlflow.exceptions import MlflowException

    with tempfile.TemporaryDirectory() as folder:
        try:
            return Path(client.download_artifacts(run_id, name, folder)).read_text(encoding="utf-8")
        except (MlflowException, OSError) as error:
            raise DataError(f"run {run_id} has no artifact {name}, which the report needs") from error
