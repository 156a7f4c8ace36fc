"""Runs whose process was killed: they are marked as KILLED by whoever uses the MLflow store next.

A process that was killed cannot end its own run, and MLflow would show it as running for ever.
"""

from __future__ import annotations

import logging
import os

from ragauge.contract import provenance
from ragauge.contract.errors import RagaugeError
from ragauge.track._connection import connect, local_database, pages, reachable

log = logging.getLogger(__name__)

_looked: set[tuple[str, int]] = set()  # MLflow stores by URI, and the process that looked


def close_orphans(uri: str) -> int:
    """Marks runs of every experiment as KILLED whose process on this machine is gone; returns how many."""
    client = connect(uri)
    query = f"attributes.status = 'RUNNING' and tags.`ragauge.host` = '{provenance.machine()}'"
    with reachable(uri):
        experiments = [found.experiment_id for found in pages(client.search_experiments)]
        if not experiments:
            return 0
        running = pages(lambda **page: client.search_runs(experiments, query, **page))
        orphans = [run for run in running if provenance.process_gone(run.data.tags)]
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

    database = local_database(uri)
    if database is not None and not database.is_file():
        return
    try:
        close_orphans(uri)
    except (MlflowException, RagaugeError) as error:
        log.debug("runs of processes that are gone stay open: %s", error)
