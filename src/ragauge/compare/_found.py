"""Which runs the sources of a comparison name, and where MLflow holds each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragauge.compare._words import MAX_NAMED, some
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.records import RECORD_FILE, read_records, refuse_trainings
from ragauge.track import LoggedRun, Reader, recorded_uri, tracking_uri


@dataclass(frozen=True)
class Found:
    """The finished jobs that sources stand for, each once.

    `readers` has the MLflow store of each by run_id; `swept` is True if a source is a sweep; `notes` name the
    jobs that did not finish.
    """

    runs: list[LoggedRun]
    readers: dict[str, Reader]
    swept: bool
    notes: list[str]

    @classmethod
    def of(cls, sources: Sequence[str], uri: str | None) -> Found:
        """Looks the sources up in MLflow; DataError where one has no finished job."""
        stores: dict[str, Reader] = {}
        jobs: dict[str, tuple[LoggedRun, Reader]] = {}
        notes: list[str] = []
        swept = False
        for source in sources:
            several, listed, reader = members(source, uri, stores)
            swept |= several
            finished = [run for run in listed if run.status == "FINISHED"]
            failed = [run for run in listed if run.status != "FINISHED"]
            if failed and (not several or not finished):
                raise DataError("; ".join(f"run {r.run_id} ({r.name}) is {r.status}: {_error(r)}"
                                          for r in failed[:MAX_NAMED]))  # fmt: skip
            if failed:
                named = some([run.name for run in failed])
                notes.append(f"{len(failed)} job(s) of {source} did not finish and are left out: {named}.")
            jobs |= {run.run_id: (run, reader) for run in finished if run.run_id not in jobs}
        runs = [run for run, _ in jobs.values()]
        return cls(runs, {run.run_id: reader for run, reader in jobs.values()}, swept, notes)


def members(source: str, uri: str | None, stores: dict[str, Reader]) -> tuple[bool, list[LoggedRun], Reader]:
    """Whether a source is a sweep, its jobs (finished or not), and the MLflow store that holds them."""

    def store(at: str) -> Reader:
        if at not in stores:
            stores[at] = Reader(at)
        return stores[at]

    folder = Path(source)
    if folder.is_dir():
        records = read_records(folder)
        refuse_trainings(records, folder)
        records = [record for record in records if "run_id" in record]
        if not records:
            raise DataError(
                f"{source} holds no job that has a run in MLflow (no {RECORD_FILE} that names one); give a "
                "sweep's folder, such as multirun/<date>/<time>"
            )
        # A password is not on record: then the environment must say where MLflow is.
        recorded = records[0]["tracking_uri"]
        reader = store(tracking_uri(uri) if uri else recorded_uri(recorded))
        return not (folder / RECORD_FILE).is_file(), [reader.run(record["run_id"]) for record in records], reader
    if not source or not set(source) <= set("0123456789abcdef"):
        raise ConfigError(f"{source!r} is neither a folder nor an MLflow run id or the beginning of one")
    reader = store(tracking_uri(uri))
    run = reader.run(source)
    role = run.tags.get("role")
    if role == "job":
        return False, [run], reader
    if role == "training":
        raise DataError(f"run {run.run_id} ({run.name}) is a training: give jobs and sweeps")
    if role != "sweep":
        raise DataError(f"run {run.run_id} has no tag role=job or role=sweep, so it is not one of ragauge's")
    members = reader.jobs(run)
    if not members:
        raise DataError(f"MLflow holds no job of sweep {run.tags.get('sweep_id', '')} (run {run.run_id})")
    return True, members, reader


def _error(run: LoggedRun) -> str:
    return run.tags.get("error", "no error was recorded")
