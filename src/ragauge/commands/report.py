"""The command `python -m ragauge.report`: the report of a sweep's folder or of an MLflow run."""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ragauge import report, track
from ragauge.contract.errors import ConfigError, DataError, RagaugeError
from ragauge.experiment import logged as _runs
from ragauge.experiment import sweeps as sweep

_RUN_ID = re.compile(r"[0-9a-f]{32}")


def write(source: str, tracking_uri: str | None = None) -> list[Path]:
    """Writes the report and returns its path; of a folder with several experiments, one for each.

    `source` is a sweep's folder, which the report goes into, or the id of the MLflow run of a sweep or of a
    job. Where the run's sweep has no folder on this machine, the report is made of what MLflow holds and goes
    into the working directory.
    """
    found: Path | sweep.Sweep = Path(source).absolute()
    if not Path(source).is_dir():
        if not _RUN_ID.fullmatch(source):
            raise ConfigError(
                f"{source} is neither a folder nor an MLflow run id (32 characters of 0-9 and a-f)"
            )
        found = _runs.find(source, track.tracking_uri(tracking_uri))
    if isinstance(found, sweep.Sweep):
        path = Path.cwd() / f"report-{found.sweep_id}.html"
        report.write_report(sweep.pooled(found), path)
        return [path]
    sweeps = sweep.load(found)
    if not sweeps:
        raise DataError(f"{found}: no job of this sweep finished, so there is nothing to report")
    written = []
    for one in sweeps:
        experiment = re.sub(r"[^\w.-]+", "_", one.experiment)
        path = found / ("report.html" if len(sweeps) == 1 else f"report-{experiment}.html")
        report.write_report(sweep.pooled(one), path)
        written.append(path)
    return written


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m ragauge.report", description="Writes the report of a sweep as one HTML file."
    )
    parser.add_argument("source", help="a sweep's folder (multirun/<date>/<time>), or an MLflow run id")
    parser.add_argument("--tracking-uri", help="where MLflow keeps the run; else as in a run of ragauge")
    given = parser.parse_args(arguments)
    logging.basicConfig(format="%(message)s")
    try:
        for path in write(given.source, given.tracking_uri):
            print(path)
    except RagaugeError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
