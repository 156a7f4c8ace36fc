"""The command `ragauge labels`: chooses answers for people to label, as a sheet and as MLflow's review queue."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ragauge.commands.errors import told
from ragauge.contract.output_files import write_output
from ragauge.contract.visible import sheet_text

ABOUT = "draws the answers that people should label, so that corrected shares get narrow"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge labels",
        description="Writes a sheet of answers for people to label. An answer on which the judge probably errs is "
        "drawn with a higher probability, and human_labels=<sheet> weighs its label accordingly.",
    )
    parser.add_argument("sources", nargs="+", help="folders of jobs or sweeps, or MLflow run ids")
    parser.add_argument("--budget", type=int, help="answers to label, over all systems (100, or all of fewer)")
    parser.add_argument("--seed", type=int, default=0, help="of the random draw (0)")
    parser.add_argument(
        "--out", type=Path, default=Path("labels.csv"), help="the sheet (labels.csv); drawn further if there"
    )
    parser.add_argument(
        "--earlier", type=Path, help="a file of labels on these answers, to learn the judge's errors from"
    )
    parser.add_argument("--uniform", type=float, help="the share of the draw that is uniform, 0.2 to 1; else chosen")
    parser.add_argument("--queue", help="name of a review queue of MLflow that gets the answers, too")
    parser.add_argument("--tracking-uri", help="where MLflow keeps the runs; else as in a run of ragauge")
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    # After the arguments: they import for seconds.
    from ragauge.experiment.sweep.reports import found
    from ragauge.plugins.labels.queue import in_queue
    from ragauge.plugins.labels.sheet import answers_of, make_sheet
    from ragauge.track import recorded_uri

    sweeps = [jobs for source in given.sources for jobs in found(source, given.tracking_uri)]
    rows = answers_of(sweeps)
    sheet = make_sheet(rows, given.budget, given.seed, given.out, given.earlier, given.uniform)
    table = sheet.rows
    if given.queue is not None:
        uri = given.tracking_uri or recorded_uri(sweeps[0].records[0].tracking_uri)
        table = in_queue(table, given.queue, uri, sweeps[0].experiment)
    write_output(given.out, sheet_text(table))
    known, labelled = sheet.expected, int(table["label"].notna().sum())
    how = f"learnt from {known.learnt_from} labels" if known.learnt_from else "by verdict and IR score alone"
    print(
        f"{given.out}: {len(table):,} of {len(rows):,} answers of {sheet.systems} system(s), {labelled:,} with a "
        "label\n"
        f"  the judge's errors are expected {how}; {known.uniform:.0%} of the draw is uniform\n"
        f"  fill the column label with 1 to 5 from the top, then: human_labels={given.out}"
    )
    return 0
