"""The command `ragauge pool`: pools the jobs in a sweep's folder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ragauge.commands._errors import told


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ragauge pool", description="Pools the jobs of a sweep.")
    parser.add_argument("folder", type=Path, help="the sweep's folder, such as multirun/<date>/<time>")
    parser.add_argument(
        "--tracking-uri",
        help="the MLflow that the sweep's run is written into; else the jobs' own, if in use here",
    )
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    given = _parser().parse_args(arguments)
    from ragauge.experiment.sweep import pooling  # after the arguments: it imports for seconds

    return pooling.pool_again(given.folder.absolute(), given.tracking_uri)
