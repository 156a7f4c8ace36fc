"""Runs whose process or machine is gone.

A process that was killed cannot end its own run, and MLflow would show it as running for ever. So the next process that
uses the MLflow store on that machine marks the run as KILLED. A job that was lost with its machine goes on in the same
run at its next attempt. So a sweep whose jobs are run again elsewhere has one run for each of them. Only the launcher
knows which machine is gone. The sign of it here: an attempt at the same job of the same sweep left no record of its
end.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from ragauge.contract import provenance
from ragauge.contract.errors import RagaugeError
from ragauge.track.connection import connect, missing_database, pages, reachable, with_tags

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as MlflowRun

log = logging.getLogger(__name__)

_looked: set[tuple[str, int]] = set()  # MLflow stores by URI, and the process that looked
_OF_A_JOB = ("role", "sweep_id", "job")  # tags by which the attempts at one job know each other
_DYING = 30.0  # seconds that a process of a lost machine may take to end, where it is on this one
Point = tuple[str, int, float]  # a metric's name, step and value


def close_orphans(uri: str) -> int:
    """Marks runs of every experiment as KILLED whose process on this machine is gone; returns how many."""
    client = connect(uri)
    query = f"attributes.status = 'RUNNING' and tags.`ragauge.host` = '{provenance.machine()}'"
    with reachable(uri):
        experiments = [found.experiment_id for found in pages(client.search_experiments)]
        if not experiments:
            return 0
        running = pages(lambda **page: client.search_runs(experiments, query, **page))
        orphans = [run for run in running if provenance.process_alive(run.data.tags) is False]
        for run in orphans:
            client.set_terminated(run.info.run_id, status="KILLED")
    return len(orphans)


def close_orphans_once(uri: str) -> None:
    """`close_orphans_quietly`, at a process's first use of the MLflow store only."""
    if (uri, os.getpid()) not in _looked:
        _looked.add((uri, os.getpid()))
        close_orphans_quietly(uri)


def close_orphans_quietly(uri: str) -> None:
    """`close_orphans` where there is an MLflow store that may be written; else runs stay open."""
    from mlflow.exceptions import MlflowException

    if missing_database(uri):
        return
    try:
        close_orphans(uri)
    except (MlflowException, RagaugeError) as error:
        log.debug("runs of processes that are gone stay open: %s", error)


def lost_run(
    client: MlflowClient, experiment_id: str, tags: Mapping[str, str], params: Mapping[str, str], ended: str | None
) -> MlflowRun | None:
    """The run of an unfinished attempt at the same job of the same sweep; None without one.

    It is the job's latest run, unless its id is `ended`, it holds other params, or its process is alive here.
    """
    if not all(name in tags for name in _OF_A_JOB):
        return None
    query = with_tags({name: tags[name] for name in _OF_A_JOB})
    found = client.search_runs([experiment_id], query, max_results=1, order_by=["attributes.start_time DESC"])
    if not found or found[0].info.run_id == ended:
        return None
    run = found[0]
    if any(params.get(name) != value for name, value in run.data.params.items()):
        return None
    deadline = time.monotonic() + _DYING
    while run.info.status == "RUNNING" and provenance.process_alive(run.data.tags):
        if time.monotonic() > deadline:
            return None
        time.sleep(0.2)
    return run


def emptied(client: MlflowClient, run: MlflowRun) -> frozenset[Point]:
    """Reopens the run without items that a second attempt would duplicate; returns the points of its metrics.

    Metrics cannot be removed, and artifacts of the same name are replaced.
    """
    from mlflow.exceptions import MlflowException

    run_id, experiment = run.info.run_id, run.info.experiment_id
    log.info("the run of a lost attempt at this job goes on: %s", run_id)
    client.update_run(run_id, status="RUNNING")
    for tag in {"error", "evaluation_run"} & set(run.data.tags):
        client.delete_tag(run_id, tag)
    for other in client.search_runs([experiment], with_tags({"evaluation_of": run_id})):
        client.delete_run(other.info.run_id)
    traces = [
        trace.info.trace_id
        for trace in pages(
            lambda **page: client.search_traces(
                locations=[experiment], filter_string=f"attributes.run_id = '{run_id}'", include_spans=False, **page
            )
        )
    ]
    for first in range(0, len(traces), 100):
        client.delete_traces(experiment, trace_ids=traces[first : first + 100])
    points = set()
    for name in run.data.metrics:
        with suppress(MlflowException):
            points |= {(m.key, m.step, m.value) for m in client.get_metric_history(run_id, name)}
    return frozenset(points)
