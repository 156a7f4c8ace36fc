"""The commands `ragauge report` and `ragauge pool`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ragauge.commands.errors import told
from ragauge.contract.output_files import add_force

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
    add_force(parser)
    given = parser.parse_args(arguments)
    from ragauge.experiment.sweep import reports

    for path in reports.write(given.source, given.tracking_uri, given.figures, given.force):
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
    parser.add_argument(
        "--trust", action="store_true", help="waiting jobs may run code and ask servers that only the folder names"
    )
    given = parser.parse_args(arguments)
    from ragauge.commands.conf import conf_folder
    from ragauge.experiment.sweep import pooling

    return pooling.pool_again(given.folder.absolute(), given.tracking_uri, conf_folder(), given.trust)
