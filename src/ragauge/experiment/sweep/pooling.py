"""Pools the jobs of a sweep into one more MLflow run, from the sweep's folder alone.

`ragauge pool <sweep folder>` does it again, for example after an interrupted sweep. It reads what the jobs'
records name, and writes only where this directory's MLflow, or `--tracking-uri`, is.
"""

from __future__ import annotations

import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragauge import track
from ragauge.contract.errors import ConfigError, RagaugeError, WaitingError, full_disk, not_writable
from ragauge.contract.job_files import read_table
from ragauge.contract.record import JobRecord
from ragauge.contract.redact import redact
from ragauge.contract.visible import visible
from ragauge.experiment.dry_run import NEEDS_FILE, NEEDS_OF_ALL_FILE
from ragauge.experiment.guard import OUTPUT, STORE, TRACKED, exit_code_of
from ragauge.experiment.need_sums import added_up, common_in_words, describe_needs, gathered
from ragauge.experiment.setup.trust import refuse_foreign_folder
from ragauge.experiment.sweep.jobs import by_experiment, experiments, records_in
from ragauge.experiment.sweep.judging import judge_deferred
from ragauge.experiment.sweep.run import is_own, track_sweep
from ragauge.experiment.sweep.waiting import needs_together
from ragauge.track import views

if TYPE_CHECKING:
    from omegaconf import DictConfig


def finish(config: DictConfig) -> int:
    """Pools the sweep that has just ended; returns its exit code."""
    folder = Path(config.hydra.sweep.dir).absolute()
    again = shlex.join(["ragauge", "pool", str(folder)])
    try:
        track.tracking_uri(config.tracking.uri)  # where its jobs, which may have run in other processes, were logged
        return pool(folder)
    except RagaugeError as error:
        print(f"error: the sweep could not be pooled: {visible(error)}\nagain: {again}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        database = track.local_database(track.absolute_uri(track.tracking_uri(config.tracking.uri)))
        places: dict[str, str | Path] = {
            STORE: str(config.store),
            OUTPUT: folder,
            **({TRACKED: database.parent} if database else {}),
        }
        refused = not_writable(error, places, database)
        if (told := refused or full_disk(error, *places.values())) is not None:
            print(f"error: the sweep could not be pooled: {visible(told)}\nagain: {again}", file=sys.stderr)
            return ConfigError.exit_code if refused else 1
        # Not logged: which loggers speak after a sweep is up to Hydra's launcher.
        print(redact(traceback.format_exc()), file=sys.stderr)
        print(f"the sweep could not be pooled; its jobs are kept: {again}", file=sys.stderr)
        return 1


def pool_again(folder: Path, tracking_uri: str | None, conf: Path, trust: bool = False) -> int:
    """Pools a sweep's folder on request, prints where it reads and writes, and returns the exit code.

    tracking_uri: the MLflow that the sweep's run is written into; None for the jobs' own. ConfigError where
    that would write into another place than the one in use here. ConfigError, too, where jobs wait for their verdicts
    and their configuration, which the folder holds, is not vouched for by `conf` and there is no trust.
    """
    if tracking_uri is None:
        _refuse_unasked(folder)
    records = records_in(folder)
    if not trust and (waiting := [record for record in records if record.deferred]):
        refuse_foreign_folder(folder, waiting, conf)
    first = _tracked(records)
    uri = track.absolute_uri(track.tracking_uri(tracking_uri)) if tracking_uri else None
    print(
        f"reads {folder} and the store {first.store or 'of its jobs'}; writes into MLflow at "
        f"{redact(uri or first.tracking_uri or 'no place')}",
        file=sys.stderr,
    )
    return pool(folder, uri)


def pool(folder: Path, tracking_uri: str | None = None) -> int:
    """Pools the jobs in a sweep's folder, logs the sweep's run, prints the leaderboard; returns the exit code.

    The run goes into MLflow at `tracking_uri`, by default where the jobs' runs are. 0 if all jobs finished,
    the jobs' code if all failures share one, else 1. Raises ConfigError where jobs wait for their verdicts,
    and folder or MLflow are not those of the jobs: verdicts belong into their runs, store and ledger.
    """
    records = records_in(folder)
    elsewhere = _copied(records) or not all(is_own(record, tracking_uri) for record in records)
    waiting = [record for record in records if record.deferred]
    if waiting and elsewhere:
        raise ConfigError(
            f"{len(waiting)} job(s) wait for their verdicts, which belong where the jobs ran: "
            f"ragauge pool {shlex.quote(str(_written_in(waiting[0]).parent))} --tracking-uri "
            f"{shlex.quote(waiting[0].tracking_uri)}"
        )
    dry = [record for record in records if record.status == "DRY RUN"]
    if dry:
        asked = [read_table(record.folder, NEEDS_FILE) for record in dry]
        every = gathered([frame for frame in (*asked, needs_together(dry)) if len(frame)])
        print(f"{len(dry)} job(s) would need {describe_needs(added_up(every))}")
        if common := common_in_words(every):
            print(f"  {common}")
        of_all = [record.folder / NEEDS_OF_ALL_FILE for record in dry]
        if any(file.is_file() for file in of_all):
            whole = [
                read_table(file.parent, file.name) if file.is_file() else one
                for file, one in zip(of_all, asked, strict=True)
            ]
            judge = " before the judge" if any(record.judged_later for record in dry) else ""
            print(f"  with all topics{judge}: {describe_needs(added_up(gathered(whole)))}")
    records = judge_deferred(records)
    for groups in experiments(by_experiment(records)):
        track_sweep(groups, folder, tracking_uri)
    supersede_earlier(records, tracking_uri)
    for record in records:
        if record.status == "FAILED":
            word = "WAITS" if record.exit_code == WaitingError.exit_code else "FAILED"
            print(
                visible(f"{word}  {record.name}: {record.told}"),
                file=sys.stderr,
            )
    return exit_code_of(records)


def supersede_earlier(records: Sequence[JobRecord], tracking_uri: str | None = None) -> None:
    """Removes the runs of earlier attempts, pooled ones too, from a sweep without a finished job in this attempt.

    The experiment's page then links to them no more. Where a job finished, `track_sweep` replaces them.
    """
    pooled = {record.experiment for record in records if record.status != "FAILED"}
    for experiment in dict.fromkeys(record.experiment for record in records):
        own = [record for record in records if record.experiment == experiment and is_own(record, tracking_uri)]
        known = next((record for record in own if record.tracking_uri and record.sweep_id), None)
        if experiment in pooled or known is None:
            continue
        uri = track.recorded_uri(known.tracking_uri)
        if not track.has_experiment(uri, experiment):
            continue
        tracker = track.Tracker(uri, experiment)
        current = {record.run_id for record in own if record.run_id}
        of_sweep = {"sweep_id": str(known.sweep_id)}
        tracker.supersede({"role": "job", **of_sweep}, current)
        if tracker.supersede({"role": "sweep", **of_sweep}, current):
            tracker.present([views.jobs_view()], views.description(tracker.experiment_id))


def _written_in(record: JobRecord) -> Path:
    """The folder in which a job wrote its record."""
    return Path(record.written_in)


def _copied(records: Sequence[JobRecord]) -> bool:
    """Whether the folder was copied or moved after its jobs wrote it."""
    return any(_written_in(record) != record.folder.resolve() for record in records)


def _tracked(records: Sequence[JobRecord]) -> JobRecord:
    """The first job with a known MLflow, else the first job."""
    return next((record for record in records if record.tracking_uri), records[0])


def _refuse_unasked(folder: Path) -> None:
    """ConfigError if the sweep's run would go into an MLflow other than this directory's.

    Passes in silence where the folder lies where it was written, and its jobs' MLflow is the one that their config
    named or that is in use here.
    """
    records = records_in(folder)
    for record in records:
        track.recorded_uri(record.tracking_uri)  # refuses a server that only the folder names
    here = track.absolute_uri(track.tracking_uri())
    used = [r for r in records if not (r.tracking_configured or is_own(r, here))]
    copied = _copied(records)
    if copied or used:
        of = used[0] if used else _tracked(records)
        was = f"{folder} was written as {_written_in(of).parent}, and " if copied else ""
        raise ConfigError(
            f"{was}its jobs are in MLflow at {of.tracking_uri or 'no place'}, and in use here "
            f"is {redact(here)}: say where the sweep's run is to be written by --tracking-uri <one of them>"
        )
