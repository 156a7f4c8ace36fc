"""The command `ragauge pool`: pools the jobs in a sweep's folder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ragauge.commands._errors import told


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ragauge pool", description="Pools the jobs of a sweep.")
    parser.add_argument("folder", type=Path, help="the sweep's folder, such as multirun/<date>/<time>")
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    given = _parser().parse_args(arguments)
    from ragauge.experiment import sweeps  # after the arguments: it imports for seconds

    return sweeps.pool(given.folder.absolute())
