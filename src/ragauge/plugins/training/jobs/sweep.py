"""Reports how the trainings of one command ended."""

from __future__ import annotations

import sys
from pathlib import Path

from ragauge.contract.job_files import read_records
from ragauge.contract.record import Record
from ragauge.contract.visible import visible
from ragauge.experiment.guard import exit_code_of


def finish(folder: Path) -> int:
    """Prints how many trainings in a sweep's folder are done, and which failed; returns the exit code.

    0 if all finished, the code of the failures where they share one, else 1.
    """
    records = read_records(folder, Record)
    failed = [record for record in records if not record.is_finished]
    print(f"{len(records) - len(failed)} training(s) done, {len(failed)} failed; folder {folder}")
    for record in failed:
        asked = " ".join(record.overrides)
        told = f"FAILED {record.name} {asked}: {record.told}"
        print(visible(told, one_line=True), file=sys.stderr)
    return exit_code_of(failed)
