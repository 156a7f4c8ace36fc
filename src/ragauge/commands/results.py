"""The commands `ragauge report`, `ragauge pool` and `ragauge ui`: what was measured, pooled and shown."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ragauge.commands._errors import told
from ragauge.contract.errors import ConfigError

# Imports inside the commands follow their arguments: they take seconds.


@told
def report(arguments: Sequence[str] | None = None) -> int:
    """Writes the report of a sweep's folder or of an MLflow run."""
    parser = argparse.ArgumentParser(
        prog="ragauge report", description="Writes the report of a sweep or a job as one HTML file."
    )
    parser.add_argument("source", help="the folder of a sweep or of a job, or an MLflow run id")
    parser.add_argument("--tracking-uri", help="where MLflow keeps the run; else as in a run of ragauge")
    parser.add_argument(
        "--figures",
        action="append",
        choices=("png", "svg", "pdf"),
        default=[],
        metavar="FORMAT",
        help="writes the figures, too, into a folder beside the report: png, svg, pdf",
    )
    given = parser.parse_args(arguments)
    from ragauge.experiment.sweep import reports

    for path in reports.write(given.source, given.tracking_uri, given.figures):
        print(path)
    return 0


@told
def pool(arguments: Sequence[str] | None = None) -> int:
    """Pools the jobs in a sweep's folder."""
    parser = argparse.ArgumentParser(prog="ragauge pool", description="Pools the jobs of a sweep.")
    parser.add_argument("folder", type=Path, help="the sweep's folder, such as multirun/<date>/<time>")
    parser.add_argument(
        "--tracking-uri", help="the MLflow that the sweep's run is written into; else the jobs' own, if in use here"
    )
    given = parser.parse_args(arguments)
    from ragauge.experiment.sweep import pooling

    return pooling.pool_again(given.folder.absolute(), given.tracking_uri)


@told
def ui(arguments: Sequence[str] | None = None) -> int:
    """Runs MLflow's UI on what was measured, on this machine alone, until it is interrupted."""
    parser = argparse.ArgumentParser(
        prog="ragauge ui",
        description="Starts MLflow's UI on the measured runs, and prints its address once it answers. It "
        "listens on 127.0.0.1 alone; Ctrl-C ends it.",
    )
    parser.add_argument("--port", type=int, default=5000, help="port of 127.0.0.1; 5000 unless given")
    parser.add_argument("--tracking-uri", help="where MLflow keeps the runs; else as in a run of ragauge")
    given = parser.parse_args(arguments)
    if not 0 < given.port < 65536:
        raise ConfigError(f"--port={given.port}: allowed are 1 to 65535")
    from ragauge import track

    try:
        track.serve(track.tracking_uri(given.tracking_uri), given.port, lambda line: print(line, flush=True))
    except KeyboardInterrupt:  # how it is meant to end
        return 0
    return 0
