"""The command `ragauge export`: a finished job as a file of samples."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ragauge.commands.errors import told
from ragauge.contract.output_files import add_force

ABOUT = "writes a job's questions, contexts, answers and labels as one file of samples"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge export",
        description="Writes a job's questions, contexts, answers and labels as one JSON Lines file.",
    )
    parser.add_argument("folder", type=Path, help="a job's folder: outputs/<date>/<time>, or one of a sweep")
    parser.add_argument("-o", "--out", type=Path, help="the file to write; else samples.jsonl in the folder")
    add_force(parser)
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    from ragauge.plugins.export.samples import write_samples  # after the arguments: it imports for seconds

    path, n = write_samples(given.folder, given.out, given.force)
    print(f"{path}: {n:,} samples; experiment=recorded recorded.path={path} reads them")
    return 0
