"""The command `ragauge check`: faults of a dataset's questions, documents and evidence; exit code 3 with --strict."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ragauge.commands.conf import take_config_options
from ragauge.commands.errors import told
from ragauge.contract.errors import ConfigError
from ragauge.contract.output_files import add_force, refuse_foreign, write_output

ABOUT = "looks for duplicates, lost evidence, leaks and outliers in a dataset, before anything is measured"
_STDOUT = "-"
# The beginning of each file, by which one that is there is known as ragauge's.
_MARKS = {"json": '{\n  "checked": ', "csv": "finding,id,others,detail"}
_EXIT_CODE = 3  # of --strict, as of `ragauge gate`


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge check",
        description="Looks for faults in a dataset: repeated questions and documents, evidence in no document or in "
        "several, leaks, outliers. No LLM is asked, and nothing is changed.",
        epilog="example: ragauge check dataset=jsonl dataset.docs=corpus.jsonl dataset.topics=questions.jsonl",
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="as for a job, such as dataset=sample")
    parser.add_argument("--against", metavar="FILE", help="questions that a model was trained on (JSON Lines or CSV)")
    parser.add_argument("--only", metavar="NAMES", help="findings to look for, with commas between")
    parser.add_argument("--strict", action="store_true", help="exit code 3 where something is found")
    parser.add_argument("--json", metavar="FILE", help="all cases of all findings, as JSON; - is standard output")
    parser.add_argument("--csv", metavar="FILE", help="a row for every case; - is standard output")
    add_force(parser)
    take_config_options(parser)
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_intermixed_args(arguments)
    files = {name: getattr(given, name) for name in _MARKS}
    to_stdout = [name for name, file in files.items() if file == _STDOUT]
    if len(to_stdout) > 1:
        raise ConfigError("--json and --csv: one format goes to standard output")
    for name, file in files.items():
        if file and file != _STDOUT:
            refuse_foreign(Path(file), _MARKS[name], given.force)
    # After the arguments: they import for seconds.
    from ragauge.commands.stages import composed
    from ragauge.plugins.hygiene import checking

    names = checking.chosen(given.only)
    of = checking.question_set(composed(given.overrides), given.against)
    found = {name: checking.FINDINGS[name](of) for name in names}
    made = {"json": lambda: checking.as_json(found, of), "csv": lambda: checking.as_csv(found)}
    for name, file in files.items():
        if file and file != _STDOUT:
            write_output(Path(file), made[name]())
            print(f"wrote {file}", file=sys.stderr)
    if to_stdout:
        sys.stdout.write(made[to_stdout[0]]())
    else:
        print(", ".join(f"{n:,} {what}" for what, n in checking.sizes_of(of).items()))
        print(checking.as_text(found))
    return _EXIT_CODE if given.strict and any(one.count for one in found.values()) else 0
