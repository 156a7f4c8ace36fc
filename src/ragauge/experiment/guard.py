"""Ends a job in every case with an exit code, a line for the user, and a record in its folder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ragauge.contract import interruption
from ragauge.contract.errors import ConfigError, RagaugeError, full_disk, not_writable
from ragauge.contract.extras import lacks
from ragauge.contract.record import Record

log = logging.getLogger(__name__)

# What chooses where a job writes.
STORE = "store=<folder> or RAGAUGE_STORE"
OUTPUT = "hydra.run.dir=<folder>, or for a sweep hydra.sweep.dir=<folder>,"
TRACKED = "tracking.uri or MLFLOW_TRACKING_URI"


def guarded(
    record: Record,
    work: Callable[[], None],
    places: Mapping[str, str | Path],
    database: Callable[[], Path | None],
) -> int:
    """Runs `work`, which fills the record, and returns the exit code; prints and records a failure.

    places: the folders that it writes into, by the keys that choose others;
    database: MLflow's file, None of a server. They are named where a disk is full or a place cannot be
    written. KeyboardInterrupt passes.
    """
    from omegaconf.errors import OmegaConfBaseException

    name = record.name
    try:
        work()
    except RagaugeError as error:
        kind = type(error).__name__
        record.error, record.error_type, record.exit_code = str(error), kind, error.exit_code
        log.error("%s: %s", name, error)
    except OmegaConfBaseException as error:
        kind = ConfigError.__name__
        record.error, record.error_type, record.exit_code = str(error), kind, ConfigError.exit_code
        log.error("%s: %s", name, error)
    except KeyboardInterrupt as error:
        record.error, record.exit_code = interruption.reason(error), interruption.exit_code(error)
        raise
    except Exception as error:
        file = database()
        folders = {**places, **({TRACKED: file.parent} if file else {})}
        lacking = lacks(name, error)
        refused = str(lacking) if lacking else not_writable(error, folders, file)
        told = refused or full_disk(error, *folders.values())
        record.error = told or f"{type(error).__name__}: {error}"
        record.exit_code = ConfigError.exit_code if refused else 1
        if told:
            log.error("%s: %s", name, told)
        else:
            log.exception("%s failed", name)
    finally:
        record.write()
    return record.exit_code


def exit_code_of(records: Sequence[Record]) -> int:
    """The exit code of several jobs: 0 if all finished, the failures' common code, else 1."""
    codes = {record.exit_code for record in records} - {0}
    return 0 if not codes else codes.pop() if len(codes) == 1 else 1
