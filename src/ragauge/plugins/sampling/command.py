"""The command `ragauge sample`: writes the topics file for `llm.sample`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ragauge.commands.errors import told
from ragauge.contract.output_files import add_force, refuse_foreign, write_output
from ragauge.contract.visible import sheet_text

ABOUT = "draws the topics to answer by the risk that their answers are wrong"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge sample",
        description="Draws topics by strata of P(right), more of them where right or wrong is uncertain, and writes "
        "the file for llm.sample=<file>. Estimates are weighted accordingly.",
    )
    parser.add_argument("folder", help="a sweep's or a job's folder; llm=none is enough, as retrieval is what counts")
    parser.add_argument("--n", type=int, required=True, help="topics to answer, at least 60 for strata")
    parser.add_argument("--predictor", metavar="URI", help="a logged predictor; else verdicts there fit one")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw; samples of one seed nest (0)")
    parser.add_argument("--trust", action="store_true", help="load a predictor that executes code of its author")
    parser.add_argument("--tracking-uri", help="where MLflow keeps the predictor; else as in a run of ragauge")
    parser.add_argument("--out", default="sample.csv", help="the file to write (sample.csv)")
    add_force(parser)
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    from ragauge.plugins.sampling.risks import chances_of_right, drawn_by_risk, outcomes_in

    refuse_foreign(Path(given.out), "p_right", given.force)
    outcomes = outcomes_in(Path(given.folder))
    right = chances_of_right(outcomes, given.predictor, given.tracking_uri, given.trust)
    chosen = drawn_by_risk(outcomes, right, given.n, given.seed)
    means = right.groupby(level=0).mean()
    table = chosen.rename(columns={"judged": "answered"}).astype({"answered": int})
    table = table.assign(p_right=table["qid"].map(means).round(4))
    write_output(Path(given.out), sheet_text(table))
    for stratum, rows in table.groupby("stratum"):
        mean = means[rows["qid"]].mean()
        print(f"stratum {stratum}: {rows['answered'].sum():,} of {len(rows):,} topics; P(right) {mean:.2f} in the mean")
    print(f"{given.out}: give llm.sample={given.out}")
    return 0
