"""`make mutants`: plants small bugs one at a time, and tells which of them the tests do not notice.

    python benchmarks/mutants.py estimate plugins/gate --seed 5
    python benchmarks/mutants.py texts --count 20 --importing    # also with the tests that import the room
    python benchmarks/mutants.py texts --again                   # what was left, after tests were written

For every room and plug-in a random sample (`--seed`) of all places where a bug can be planted is taken; half
of them are the slips that colleagues make (`planting.places.KINDS`). Each mutant is written into a copy of src/
and tried on those quick tests that come to its place, of its own folder. `benchmarks/mutants/` holds a file for
each room and plug-in: its last sample, what no test noticed, and which bugs change nothing that can be seen,
with the reason; those are not counted. benchmarks/MUTANTS.md is the table of all.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import yaml
from planting.places import KINDS, ROOT, places, sample, units
from planting.trials import survivors

FOLDER = ROOT / "benchmarks" / "mutants"
TABLE = ROOT / "benchmarks" / "MUTANTS.md"

# What most tests import, and every process of tests then has.
IMPORTED_ONCE = (
    "hydra", "langchain_ollama", "langchain_openai", "matplotlib.pyplot", "mlflow", "numba", "pandas",
    "pyarrow", "pytest", "scipy.stats", "sentence_transformers", "sklearn.linear_model",
)  # fmt: skip


@dataclass
class Sample:
    """The last sample of a room or a plug-in: mutants by kind, and those that were not noticed.

    A fresh sample forgets the older one, but not which bugs change nothing that can be seen.
    """

    seed: int = 0
    tests: str = "own"
    tried: dict[str, int] = field(default_factory=dict)  # by kind, equivalent ones left out
    unnoticed: dict[str, int] = field(default_factory=dict)  # of these, when the sample was drawn
    left: dict[str, str] = field(default_factory=dict)  # what no test notices now: its name, and its kind
    equivalent: dict[str, str] = field(default_factory=dict)  # name: why nobody could see it

    @property
    def at_first(self) -> float:
        """The share that was noticed when the sample was drawn."""
        return 1 - sum(self.unnoticed.values()) / max(sum(self.tried.values()), 1)

    @property
    def now(self) -> float:
        return 1 - len(self.left) / max(sum(self.tried.values()), 1)


def _file(unit: str) -> Path:
    return FOLDER / f"{unit.replace('/', '.')}.yaml"


def read(unit: str) -> Sample:
    file = _file(unit)
    return Sample(**yaml.safe_load(file.read_text(encoding="utf-8"))) if file.exists() else Sample()


def write(unit: str, found: Sample) -> None:
    FOLDER.mkdir(exist_ok=True)
    text = yaml.safe_dump(asdict(found), sort_keys=False, allow_unicode=True, width=10_000)
    _file(unit).write_text(text, encoding="utf-8")
    write_table()


def fresh(unit: str, count: int, seed: int, processes: int, own: bool) -> Sample:
    """Draws a sample, and tries it."""
    same = read(unit).equivalent
    chosen = [mutant for mutant in sample(unit, count, seed) if mutant.name not in same]
    alive = survivors(chosen, processes, own)
    return Sample(
        seed,
        "own" if own else "and importing",
        dict(Counter(mutant.kind for mutant in chosen)),
        dict(Counter(mutant.kind for mutant in alive)),
        {mutant.name: mutant.kind for mutant in alive},
        same,
    )


def again(unit: str, processes: int) -> Sample:
    """Tries again what was left.

    A name that moved into `equivalent` leaves the counts. Code that is gone counts as noticed now.
    """
    found = read(unit)
    for name in [name for name in found.left if name in found.equivalent]:
        kind = found.left.pop(name)
        found.tried[kind] -= 1
        found.unnoticed[kind] -= 1
    chosen = [mutant for mutant in places(unit) if mutant.name in found.left]
    alive = survivors(chosen, processes, found.tests == "own")
    found.left = {mutant.name: mutant.kind for mutant in alive}
    return found


def _row(name: str, found: Sample) -> str:
    tried, missed = sum(found.tried.values()), sum(found.unnoticed.values())
    counts = (found.seed, found.tests, tried, tried - missed, f"{found.at_first:.0%}", f"{found.now:.0%}")
    return f"| {name} | {' | '.join(map(str, counts))} |"


def write_table() -> None:
    """benchmarks/MUTANTS.md, from the samples."""
    found = {unit: read(unit) for unit in units() if _file(unit).exists()}
    found = {unit: one for unit, one in found.items() if one.tried}
    tried = sum((Counter(one.tried) for one in found.values()), Counter[str]())
    missed = sum((Counter(one.unnoticed) for one in found.values()), Counter[str]())
    lines = [
        "# Planted bugs that the tests notice",
        "",
        "Each row is a random sample of small bugs in a room or a plug-in, drawn with a fresh seed that nobody had",
        "written tests for, and tried on its own quick tests (`make mutants`). *Noticed at first* says how many other",
        "bugs the tests notice; *now* what became of this sample after tests were written for what was missed.",
        "`mutants/` names the bugs that are left, and those that change nothing that can be seen, with the reason.",
        "",
        "| where | seed | tests | mutants | noticed | at first | now |",
        "|---|---|---|---|---|---|---|",
        *[_row(unit, one) for unit, one in found.items()],
        "",
        "By kind, at first:",
        "",
        "| kind | what | mutants | noticed | share |",
        "|---|---|---|---|---|",
    ]
    for kind, what in KINDS.items():
        if n := tried[kind]:
            lines.append(f"| {kind} | {what} | {n} | {n - missed[kind]} | {1 - missed[kind] / n:.0%} |")
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", nargs="*", default=units(), metavar="UNIT", help="a room, or plugins/NAME")
    parser.add_argument("--count", type=int, help="mutants of each: 40 of a room, 15 of a plug-in unless told")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--importing", action="store_true", help="try the tests of others that import it, too")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="mutants tried at once")
    parser.add_argument("--again", action="store_true", help="only what is left of the last sample")
    parser.add_argument("--table", action="store_true", help="only write the table from what was tried")
    args = parser.parse_args(arguments)
    if unknown := set(args.units) - set(units()):
        parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(units())}")
    if args.table:
        return write_table()
    for module in IMPORTED_ONCE:
        __import__(module)
    for unit in args.units:
        count = args.count or (15 if unit.startswith("plugins/") else 40)
        if args.again:
            found = again(unit, args.processes)
        else:
            found = fresh(unit, count, args.seed, args.processes, not args.importing)
        write(unit, found)
        print(_row(unit, found), flush=True)
    return None


if __name__ == "__main__":
    main()
