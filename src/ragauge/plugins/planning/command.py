"""The command `ragauge plan`: the size of a study, from a pilot sweep's variances."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from ragauge.commands.errors import told
from ragauge.contract.visible import visible

ABOUT = "says how many topics and labels a study takes, from a pilot sweep"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge plan",
        description="Prints how many topics show a difference between systems, and how many labels give the "
        "share of right answers an interval of a width, from a pilot sweep.",
    )
    parser.add_argument("source", help="a sweep's folder (multirun/<date>/<time>), or an MLflow run id")
    goal = parser.add_mutually_exclusive_group(required=True)
    goal.add_argument("--difference", type=float, help="the difference to detect, such as 0.05 (5 points)")
    goal.add_argument("--equivalent", type=float, metavar="MARGIN", help="the margin within which systems are equal")
    parser.add_argument("--power", type=float, default=0.8, help="probability of detecting it (0.8)")
    parser.add_argument("--alpha", type=float, default=0.05, help="the error of the first kind (0.05)")
    parser.add_argument(
        "--measure",
        default="ir_score",
        help="ir_score (the default), correct, hallucination, or an answer measure of the pilot",
    )
    parser.add_argument(
        "--correction", choices=("holm", "none"), default="holm", help="holm: alpha over the pairs (default)"
    )
    parser.add_argument("--comparisons", type=int, help="pairs of the study; else those of the pilot")
    parser.add_argument("--width", type=float, default=0.1, help="width of the interval of right answers (0.1)")
    parser.add_argument("--topics", type=int, help="topics of the study that is labelled; else those of the pilot")
    parser.add_argument(
        "--topic-price", type=float, default=0.0, help="US dollars of a topic beside its answers, such as a label (0)"
    )
    parser.add_argument(
        "--confidence", type=float, default=0.8, help="confidence of the numbers that allow for the pilot's size (0.8)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with every pair")
    parser.add_argument("--tracking-uri", help="where MLflow keeps the run; else as in a run of ragauge")
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    # After the arguments: they import for seconds.
    from ragauge.experiment.sweep.reports import found
    from ragauge.plugins.planning.plan import Asked, plan, plan_text

    names = Asked.__dataclass_fields__
    asked = Asked(**{name: getattr(given, name) for name in names})
    sweeps = found(given.source, given.tracking_uri)
    plans = [(plan(sweep, asked), sweep) for sweep in sweeps]
    if given.json:
        print(json.dumps([planned.as_json() for planned, _ in plans], indent=2, ensure_ascii=True, allow_nan=False))
    else:
        print("\n\n".join(visible(plan_text(planned, sweep)) for planned, sweep in plans))
    return 0
