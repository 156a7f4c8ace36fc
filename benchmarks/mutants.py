"""`make mutants`: plants small bugs one at a time, and tells which of them the tests do not notice.

    python benchmarks/mutants.py estimate store --count 60
    python benchmarks/mutants.py texts --count 20 --seed 1 --own    # minutes: the room's own tests only

For every room a random sample (`--seed`) of all places where a bug can be planted is taken. Each mutant is
written into a copy of src/ and tried on the tests that come to its place, of its room and of the rooms that
import it (or of its room alone: `--own`), except slow ones. benchmarks/MUTANTS.md is the table, with every
survivor; benchmarks/mutants.yaml names those that are equivalent, with the reason, and they are not counted.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

import yaml
from planting.places import PACKAGE, ROOT, Mutant, places, sample
from planting.trials import survivors

EQUIVALENT = ROOT / "benchmarks" / "mutants.yaml"
TABLE = ROOT / "benchmarks" / "MUTANTS.md"
_OWN, _IMPORTING = "own", "and importing"
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
    """A row of the table: a sample of a room's mutants, and which of them its tests noticed."""

    tried: int
    at_first: int  # noticed when the sample was drawn
    same: int  # noticed by no test, for they are equivalent
    left: int  # noticed by no test, though they are not
    own: bool  # tried on the room's own tests alone
    names: tuple[str, ...] = ()  # of those left

    def noticing(self, alive: Sequence[Mutant], same: int = 0) -> Row:
        """This row where no test notices these mutants, and `same` others that are equivalent."""
        names = tuple(mutant.name for mutant in alive if mutant.name not in equivalent())
        return dataclasses.replace(self, same=same + len(alive) - len(names), left=len(names), names=names)

    def text(self, room: str, seed: int) -> str:
        counted = self.tried - self.same
        noticed = counted - self.left
        numbers = (self.tried, self.at_first, noticed, self.same, self.left, f"{noticed / max(counted, 1):.0%}")
        cells = (room, seed, _OWN if self.own else _IMPORTING, *numbers)
        return f"| {' | '.join(map(str, cells))} |"


def read() -> dict[tuple[str, int], Row]:
    """The rows of the table by room and seed."""
    found: dict[tuple[str, int], Row] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines() if TABLE.exists() else []:
        if cells := re.match(r"\| (\w+) \| (\d+) \| ([a-z ]+)" + r" \| (\d+)" * 5, line):
            tried, at_first, _, same, left = map(int, cells.groups()[3:])
            found[cells[1], int(cells[2])] = Row(tried, at_first, same, left, cells[3] == _OWN)
        elif name := re.match(r"- (\d+): `((\w+)/.* -> .*)`", line):
            old = found[name[3], int(name[1])]
            found[name[3], int(name[1])] = dataclasses.replace(old, names=(*old.names, name[2]))
    return found


def write(rows: dict[tuple[str, int], Row]) -> None:
    """Puts these rows into the table; the others stay as they are."""
    rows = read() | rows
    order = sorted(rows, key=lambda of: (ROOMS.index(of[0]) if of[0] in ROOMS else len(ROOMS), of))
    left = [f"- {seed}: `{name}`" for room, seed in order for name in rows[room, seed].names]
    lines = [
        "# Planted bugs that the tests notice",
        "",
        "Each row is a random sample (its seed) of small bugs in a room, each tried on those quick tests that come",
        "to its place (`make mutants`): of the room alone, or also of the rooms that import it. Of what no test",
        "noticed at first, each bug got a test, went with needless code, which counts no more, or is equivalent:",
        "`mutants.yaml` names those, and says why. So *noticed at first* says how many other bugs the tests notice,",
        "*noticed now* what became of this sample.",
        "",
        "| room | seed | tests | mutants | noticed at first | noticed now | equivalent | survived | of the others |",
        "|---|---|---|---|---|---|---|---|---|",
        *[rows[room, seed].text(room, seed) for room, seed in order],
        *(["", "## Survived, by seed", "", *left] if left else []),
    ]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", default=list(ROOMS), help=f"of {', '.join(ROOMS)}")
    parser.add_argument("--count", type=int, default=60, help="mutants of a room")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--own", action="store_true", help="try only the room's own tests")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="mutants tried at once")
    parser.add_argument("--again", action="store_true", help="only what survived according to the table")
    args = parser.parse_args()
    unknown = set(args.rooms) - {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    if unknown:
        parser.error(f"no room {', '.join(sorted(unknown))}; there are {', '.join(ROOMS)}")
    if args.again:
        args.rooms = [room for room in args.rooms if (room, args.seed) in read()]
    for module in IMPORTED_ONCE:
        __import__(module)
    for room in args.rooms:
        old = read().get((room, args.seed))
        if args.again and old is not None:
            chosen = [mutant for mutant in places(room) if mutant.name in old.names]
            known = [mutant for mutant in chosen if mutant.name in equivalent()]
            tried = [mutant for mutant in chosen if mutant not in known]
            there = dataclasses.replace(
                old, tried=old.tried - len(old.names) + len(chosen)
            )  # code that went counts no more
            found = there.noticing([*known, *survivors(tried, args.processes, old.own)], old.same)
        else:
            chosen = sample(room, args.count, args.seed)
            alive = survivors(chosen, args.processes, args.own)
            found = Row(len(chosen), len(chosen) - len(alive), 0, 0, args.own).noticing(alive)
        write({(room, args.seed): found})
        print(found.text(room, args.seed), flush=True)


if __name__ == "__main__":
    main()
