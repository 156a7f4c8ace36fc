"""The command `ragauge compare`: runs side by side, on the terminal and for a paper."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from ragauge import compare as comparing
from ragauge.commands.errors import told
from ragauge.compare import choose_metrics
from ragauge.contract.errors import ConfigError
from ragauge.contract.families import FAMILIES
from ragauge.contract.output_files import add_force, refuse_foreign, write_output

_WIDTH = 200  # of a table that no terminal bounds
_STDOUT = "-"
# What each file begins with, by which one that is there is known as ragauge's.
_MARKS = {
    "csv": "run_id,run,",
    "topics_csv": "run_id,run,qid,",
    "md": " of experiment ",
    "latex": "% needs \\usepackage{booktabs}",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge compare",
        description="Prints metrics of runs, their differences by topic, and the topics that differ most.",
    )
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="MLflow run id (or its beginning) of a job or sweep, or a folder"
    )
    parser.add_argument("--baseline", help="a run's id or name; else the first run, or a sweep's best IR score")
    parser.add_argument("--n-tokens", type=int, help="the budget of the pairs; else the largest of all systems")
    parser.add_argument("--metrics", help="names as in MLflow, with commas between")
    parser.add_argument("--all", action="store_true", help="every metric")
    parser.add_argument("--topics", type=int, default=10, help="topics listed by score and by class (10)")
    parser.add_argument("--bootstrap", type=int, help="replicates of the differences; else the baseline's")
    parser.add_argument("--seed", type=int, help="seed of bootstrap and permutations; else the baseline's")
    parser.add_argument("--across-datasets", action="store_true", help="pair the topics that datasets share")
    parser.add_argument(
        "--family",
        choices=("section", *FAMILIES),
        help="tests that Holm's correction counts together; else the baseline's all, or section",
    )
    parser.add_argument(
        "--equivalent", type=float, metavar="MARGIN", help="which runs are no better and no worse by more, such as 0.03"
    )
    parser.add_argument("--slices", action="store_true", help="also by slice of the topics")
    for name, what in (
        ("csv", "a row per run"), ("topics-csv", "a row per run and topic"),
        ("md", "everything, as Markdown"), ("latex", "tables that need booktabs"),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", metavar="FILE", help=f"{what}; - is standard output")
    add_force(parser)
    parser.add_argument("--tracking-uri", help="where MLflow keeps the runs; else as in a run of ragauge")
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    _run(_parser().parse_args(arguments))
    return 0


def _run(given: argparse.Namespace) -> None:
    files = {name: getattr(given, name) for name in ("csv", "topics_csv", "md", "latex")}
    to_stdout = [name for name, file in files.items() if file == _STDOUT]
    if len(to_stdout) > 1:
        raise ConfigError(f"--{' and --'.join(to_stdout).replace('_', '-')}: one format goes to standard output")
    for name, file in files.items():
        if file and file != _STDOUT:
            refuse_foreign(Path(file), _MARKS[name], given.force)
    if given.topics < 0:
        raise ConfigError(f"--topics {given.topics}: allowed are 0 (none) and more")
    if given.bootstrap is not None and not 0 <= given.bootstrap <= 100_000:
        raise ConfigError(f"--bootstrap {given.bootstrap}: allowed are 0 (no intervals) to 100,000 replicates")
    if given.seed is not None and given.seed < 0:
        raise ConfigError(f"--seed {given.seed}: allowed are 0 and more")
    found = comparing.compare(
        given.runs,
        given.tracking_uri,
        n_tokens=given.n_tokens,
        baseline=given.baseline,
        n_boot=given.bootstrap,
        seed=given.seed,
        across_datasets=given.across_datasets,
        slices=given.slices,
        family=given.family,
        equivalent=given.equivalent,
    )
    metrics = choose_metrics(found, given.metrics, given.all)
    made = {
        "csv": lambda: comparing.runs_csv(found, metrics),
        "topics_csv": lambda: comparing.topics_csv(found),
        "md": lambda: comparing.markdown(found, metrics, given.topics),
        "latex": lambda: comparing.latex(found, metrics),
    }
    for name, file in files.items():
        if file and file != _STDOUT:
            _write(Path(file), made[name]())
    if to_stdout:
        sys.stdout.write(made[to_stdout[0]]())
    else:
        width = shutil.get_terminal_size((_WIDTH, 24)).columns
        sys.stdout.write(comparing.text(found, metrics, given.topics, width))


def _write(file: Path, content: str) -> None:
    write_output(file, content)
    print(f"wrote {file}", file=sys.stderr)
