"""The command `ragauge report`: the report of a sweep's folder or of an MLflow run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ragauge.commands._errors import told


def _parser() -> argparse.ArgumentParser:
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
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    given = _parser().parse_args(arguments)
    from ragauge.experiment.sweep import reports  # after the arguments: it imports for seconds

    for path in reports.write(given.source, given.tracking_uri, given.figures):
        print(path)
    return 0
