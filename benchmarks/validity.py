"""Simulations with known truth: how often intervals hold it, and how often nothing is called something.

`python benchmarks/validity.py` runs them at full size and writes benchmarks/VALIDITY.md; `--only shares` (a
module of benchmarks/known_truth, several with commas) measures these sections and leaves the others as they
are; `--quick` runs a tenth of the trials and prints the table only. The simulations are those of
tests/validity.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src"), str(HERE.parent / "tests")]

from known_truth.rows import SEED, Row  # noqa: E402

TABLE = HERE / "VALIDITY.md"
# Modules of known_truth, each with SECTIONS, in the order of the table.
MODULES = (
    "shares",
    "hallucinations",
    "thresholds",
    "paired_tests",
    "families",
    "predictor",
    "foresight",
    "floor",
    "plan",
    "agreement",
    "stability",
    "calibration",
    "transfer",
    "best",
    "curves",
    "zones",
    "sampling",
    "answered",
    "foreseen",
    "labels",
    "prompts",
    "ablation",
    "slices",
    "robustness",
    "funnel",
    "gating",
    "looks",
    "truthfulness",
    "ares",
    "clusters",
    "conversations",
    "languages",
    "race",
    "additions",
    "repeats",
    "annotation",
)
_HEAD = (
    "# Numbers against known truth\n\nWritten by `python benchmarks/validity.py`; seed "
    f"{SEED} throughout. *Before* is what the same simulation gave on version 0.1.0 before these "
    "estimators; *now* is what it gives today. Estimators and assumptions: docs/method.md.\n"
)


def sections_of(module: str) -> dict[str, list[Row]]:
    """The sections of a module of known_truth: rows by title."""
    found: dict[str, list[Row]] = importlib.import_module(f"known_truth.{module}").SECTIONS
    return found


def measured(title: str, rows: Sequence[Row], quick: bool) -> str:
    """A section as a Markdown table, its simulations run now."""
    lines = [f"## {title}\n", "| what | setting | wanted | before | now |", "|---|---|---|---|---|"]
    for row in rows:
        start = time.perf_counter()
        trials = row.trials // 10 if quick else row.trials
        now = row.measure(trials)
        setting = f"{row.setting}, {trials:,} trials" if trials else row.setting
        lines.append(f"| {row.what} | {setting} | {row.wanted} | {row.before} | {now} |")
        print(f"{time.perf_counter() - start:6.1f} s  {row.what}: {now}", file=sys.stderr, flush=True)
    return "\n".join(lines) + "\n"


def written() -> dict[str, str]:
    """The sections of the committed table by title."""
    parts = re.split(r"^(?=## )", TABLE.read_text(encoding="utf-8"), flags=re.M)[1:]
    return {part.splitlines()[0].removeprefix("## "): part.rstrip("\n") + "\n" for part in parts}


def main() -> int:
    """Runs the simulations and writes or prints their table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials; writes no file")
    parser.add_argument("--only", metavar="MODULE[,MODULE]", help=f"of {', '.join(MODULES)}")
    arguments = parser.parse_args()
    chosen = MODULES if arguments.only is None else tuple(arguments.only.split(","))
    unknown = [module for module in chosen if module not in MODULES]
    if unknown:
        parser.error(f"--only {unknown[0]}: allowed are {', '.join(MODULES)}")
    before = {} if arguments.quick or arguments.only is None else written()
    tables = []
    for module in MODULES:
        for title, rows in sections_of(module).items():
            if module in chosen:
                tables.append(measured(title, rows, arguments.quick))
            elif title in before:
                tables.append(before[title])
    text = "\n".join([_HEAD, *tables])
    if arguments.quick:
        print(text)
    else:
        TABLE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
