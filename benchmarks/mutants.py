"""`make mutants`: plants small bugs one at a time, and tells which of them the tests do not notice.

    python benchmarks/mutants.py estimate store --count 60

For every room a random sample (`--seed`) of all places where a bug can be planted is taken. A mutant lives in
a copy of src/ and is held against those tests that come to its place, of its room and of whatever imports its
room, the slow ones left out. benchmarks/MUTANTS.md is the table, with every survivor; what
benchmarks/mutants.yaml names as equivalent, with its reason, is not counted.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
from dataclasses import dataclass

import yaml
from planting.places import PACKAGE, ROOT, places, sample
from planting.trials import survivors

EQUIVALENT = ROOT / "benchmarks" / "mutants.yaml"
TABLE = ROOT / "benchmarks" / "MUTANTS.md"
ROOMS = (
    "measures",
    "retrieval",
    "estimate",
    "store",
    "llms",
    "experiment",
    "diagnose",
    "plugins",
    "compare",
    "findings",
    "show",
    "track",
    "answering",
    "datasets",
    "contract",
    "texts",
    "commands",
)

# What most tests import, and every process of tests then has.
IMPORTED_ONCE = (
    "hydra", "langchain_ollama", "langchain_openai", "matplotlib.pyplot", "mlflow", "numba", "pandas",
    "pyarrow", "pytest", "scipy.stats", "sentence_transformers", "sklearn.linear_model",
)  # fmt: skip


def equivalent() -> dict[str, str]:
    """Mutants that change nothing that can be seen: their names and why."""
    return yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8")) or {} if EQUIVALENT.exists() else {}


@dataclass(frozen=True)
class Row:
    """A room in the table: mutants tried, those noticed when they were drawn, and names that survive now."""

    tried: int
    at_first: int
    alive: tuple[str, ...]

    def text(self, room: str) -> str:
        same = sum(name in equivalent() for name in self.alive)
        counted, left = self.tried - same, len(self.alive) - same
        share = f"{(counted - left) / counted:.0%}" if counted else "-"
        return f"| {room} | {self.tried} | {self.at_first} | {counted - left} | {same} | {left} | {share} |"


def read() -> dict[str, Row]:
    """The rows of the table."""
    found: dict[str, Row] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines() if TABLE.exists() else []:
        if counts := re.match(r"\| (\w+) \| (\d+) \| (\d+) \|", line):
            found[counts[1]] = Row(int(counts[2]), int(counts[3]), ())
        elif name := re.match(r"- `((\w+)/.* -> .*)`", line):
            old = found[name[2]]
            found[name[2]] = dataclasses.replace(old, alive=(*old.alive, name[1]))
    return found


def write(rooms: dict[str, Row]) -> None:
    """Puts the rows of these rooms into the table; the others' stay."""
    rooms = read() | rooms
    alive = [name for room in ROOMS if room in rooms for name in rooms[room].alive]
    left = [f"- `{name}`" for name in alive if name not in equivalent()]
    same = [f"- `{name}`: {equivalent()[name]}" for name in alive if name in equivalent()]
    lines = [
        "# Planted bugs that the tests notice",
        "",
        "A random sample of small bugs per room, each against the tests of its room that come to its place",
        "(`make mutants`). What nobody noticed at first was given a test or is equivalent, so that the last",
        "column says what became of the sample; how many of other bugs would be noticed, `--seed` shows.",
        "",
        "| room | mutants | noticed at first | noticed now | equivalent | survived | noticed of the others |",
        "|---|---|---|---|---|---|---|",
        *[rooms[room].text(room) for room in ROOMS if room in rooms],
        *(["", "## Survived", "", *left] if left else []),
        *(["", "## Equivalent, and why", "", *same] if same else []),
    ]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", default=list(ROOMS), help=f"of {', '.join(ROOMS)}")
    parser.add_argument("--count", type=int, default=60, help="mutants of a room")
    parser.add_argument("--seed", type=int, default=0, help="another sample, which the table leaves out")
    parser.add_argument("--again", action="store_true", help="only what survived according to the table")
    args = parser.parse_args()
    unknown = set(args.rooms) - {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    if unknown:
        parser.error(f"no room {', '.join(sorted(unknown))}; there are {', '.join(ROOMS)}")
    if args.again:
        args.rooms = [room for room in args.rooms if room in read()]
    for module in IMPORTED_ONCE:
        __import__(module)
    at_once = os.cpu_count() or 1
    for room in args.rooms:
        if args.again:
            old = read()[room]
            same = tuple(name for name in old.alive if name in equivalent())
            chosen = [mutant for mutant in places(room) if mutant.name in set(old.alive) - set(same)]
            alive = (*same, *[mutant.name for mutant in survivors(chosen, at_once)])
            found = dataclasses.replace(old, alive=alive)
        else:
            chosen = sample(room, args.count, args.seed)
            alive = tuple(mutant.name for mutant in survivors(chosen, at_once))
            found = Row(len(chosen), len(chosen) - len(alive), alive)
        if args.seed == 0:  # the table is about one sample
            write({room: found})
        print(found.text(room), flush=True)


if __name__ == "__main__":
    main()
