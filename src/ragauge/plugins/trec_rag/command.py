"""The command `ragauge trec_rag`: writes a job as TREC RAG's files, and scores nugget assignments."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ragauge.commands.errors import told
from ragauge.contract.output_files import add_force, refuse_foreign

ABOUT = "writes a job as TREC RAG's files, and scores assignments of nuggets as nuggetizer does"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ragauge trec_rag", description=f"Command that {ABOUT}.")
    commands = parser.add_subparsers(dest="command", required=True)
    export = commands.add_parser("export", help="answers.jsonl, run.trec, nuggets.jsonl and assignments.jsonl of a job")
    export.add_argument("folder", type=Path, help="a job's folder: outputs/<date>/<time>, or one of a sweep")
    export.add_argument("-o", "--out", type=Path, help="the folder to write into; else trec_rag in the job's folder")
    export.add_argument("--run-id", help="the run's name; else that of the run that was read, or the retriever's")
    export.add_argument("--year", type=int, choices=(2024, 2025), help="the format; else that of the run, or 2024")
    export.add_argument("--team", default="organizer", help="the team's id in the format of 2025")
    add_force(export)
    scores = commands.add_parser("scores", help="strict and other scores of a file of assignments")
    scores.add_argument("file", type=Path, help="assignments as nuggetizer writes them, JSON Lines")
    scores.add_argument("-o", "--out", type=Path, required=True, help="the file to write, a row a topic and the means")
    add_force(scores)
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    if given.command == "scores":
        from ragauge.plugins.trec_rag.scores import write_scores

        refuse_foreign(given.out, '{"qid": ', given.force)
        means = write_scores(given.file, given.out)
        shown = ", ".join(f"{name.removesuffix('_score')} {means[name]:.4f}" for name in means if name != "qid")
        print(f"{given.out}: means over topics: {shown}")
        return 0
    from ragauge.plugins.trec_rag.writing import write_files  # after the arguments: it imports for seconds

    out = given.out or given.folder / "trec_rag"
    for name, n in write_files(given.folder, out, given.run_id, given.year, given.team, given.force).items():
        print(f"{out / name}: {n:,} rows")
    return 0
