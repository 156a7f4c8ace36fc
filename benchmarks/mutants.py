"""`make mutants`: plants small bugs one at a time, and tells which of them the tests do not notice.

    python benchmarks/mutants.py estimate store --count 60

For every room a random sample (`--seed`) of all places where a bug can be planted is taken. A mutant lives in
a copy of src/ and is held against the tests that mirror its file (`tests_of`), the slow ones left out.
benchmarks/MUTANTS.md is the table, with every survivor; what benchmarks/mutants.yaml names as equivalent,
with its reason, is not counted.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "ragauge"
TESTS = ROOT / "tests"
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
    "trainers",
    "synthesis",
    "engines",
)

# What most tests import, and every child then has.
IMPORTED_ONCE = (
    "hydra", "langchain_ollama", "langchain_openai", "matplotlib.pyplot", "mlflow", "numba", "pandas",
    "pyarrow", "pytest", "scipy.stats", "sentence_transformers", "sklearn.linear_model",
)  # fmt: skip

_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_CALLED = {
    "min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum",
    "floor": "ceil", "ceil": "floor", "sum": "mean", "mean": "sum", "sqrt": "abs", "cumsum": "abs",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One planted bug: the characters from `start` to `end` of a file are replaced by `text`."""

    file: Path
    where: str  # the function or class, dotted
    line: int
    before: str
    after: str
    start: int
    end: int
    text: str
    nth: int = 1  # of those that are told by the same words

    @property
    def name(self) -> str:
        """What identifies it while lines move."""
        which = f" ({self.nth})" if self.nth > 1 else ""
        file = self.file.relative_to(PACKAGE).as_posix()
        return f"{file}:{self.where}: {self.before} -> {self.after}{which}"

    def source(self) -> str:
        """The file with the bug."""
        text = self.file.read_text(encoding="utf-8")
        return text[: self.start] + self.text + text[self.end :]


def _short(text: str) -> str:
    return " ".join(text.split())[:90]


class _Places(ast.NodeVisitor):
    """Collects the mutants of a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.text = file.read_text(encoding="utf-8")
        self.starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line.encode()))
        self.bytes = self.text.encode()
        self.scope: list[str] = []
        self.found: list[Mutant] = []
        self.visit(ast.parse(self.text))

    def _at(self, line: int, column: int) -> int:
        return len(self.bytes[: self.starts[line - 1] + column].decode())

    def _plant(self, node: ast.expr | ast.stmt, text: str, after: str | None = None) -> None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start, end = (
            self._at(node.lineno, node.col_offset),
            self._at(node.end_lineno, node.end_col_offset),
        )
        before = _short(ast.unparse(node))
        self.found.append(
            Mutant(
                self.file,
                ".".join(self.scope) or "module",
                node.lineno,
                before,
                _short(after or text),
                start,
                end,
                text,
            )
        )

    def _changed(self, node: ast.expr, **changes: object) -> None:
        fields = {name: getattr(node, name) for name in node._fields} | changes
        self._plant(node, f"({ast.unparse(ast.fix_missing_locations(type(node)(**fields)))})")

    def _inside(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.scope.append(node.name)
        body = node.body
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]  # the docstring
        if not isinstance(node, ast.ClassDef):
            for default in [*node.args.defaults, *[d for d in node.args.kw_defaults if d is not None]]:
                self.visit(default)
        for statement in body:
            self.visit(statement)
        self.scope.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _inside

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'"):
            return
        self._plant(node.test, "(False)")
        if not isinstance(node.test, ast.Compare):  # a comparison is turned round below
            self._plant(node.test, f"(not ({ast.unparse(node.test)}))")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        kind = type(node.ops[0])
        if kind in _COMPARED:
            self._changed(node, ops=[_COMPARED[kind](), *node.ops[1:]])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        kind = type(node.op)
        words = (ast.JoinedStr, ast.List, ast.Tuple)
        text = any(
            isinstance(side, words) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
            for side in (node.left, node.right)
        )
        if kind in _COMPUTED and not text:
            self._changed(node, op=_COMPUTED[kind]())
            self._plant(node, f"({ast.unparse(node.left)})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._changed(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            self._plant(node, f"({ast.unparse(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._plant(node, str(not node.value))
        elif isinstance(node.value, int | float):
            self._plant(node, str(node.value + 1))

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _CALLED:
            other = (
                ast.Attribute(node.func.value, _CALLED[name], ast.Load())
                if isinstance(node.func, ast.Attribute)
                else ast.Name(_CALLED[name], ast.Load())
            )
            self._changed(node, func=other)
        if "Error" not in name:
            for i, keyword in enumerate(node.keywords):
                if keyword.arg is not None:
                    self._changed(node, keywords=node.keywords[:i] + node.keywords[i + 1 :])
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Messages are not mutated."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """What guards are is seen where their condition is False."""

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call | ast.Await):
            self._plant(node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._plant(node, "pass")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._plant(node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._plant(node, "pass")


def mutants_of(file: Path) -> list[Mutant]:
    """All mutants of a file that compile."""
    found: list[Mutant] = []
    alike: Counter[str] = Counter()
    for mutant in _Places(file).found:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            try:
                compile(mutant.source(), str(file), "exec")
            except SyntaxError:
                continue
        alike[mutant.name] += 1
        found.append(dataclasses.replace(mutant, nth=alike[mutant.name]))
    return found


@cache
def _test_files() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("test_*.py"))}


@cache
def _names(file: Path) -> tuple[str, ...]:
    """The public classes and functions of a file."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    body = ast.parse(file.read_text(encoding="utf-8")).body
    return tuple(node.name for node in body if isinstance(node, kinds) and not node.name.startswith("_"))


def _importing(file: Path) -> re.Pattern[str]:
    """What a line that imports a file of the package looks like."""
    package = ".".join(["ragauge", *file.relative_to(PACKAGE).parts[:-1]])
    return re.compile(rf"from {package}\.{file.stem} import|from {package} import [^\n]*\b{file.stem}\b")


def _importers(file: Path) -> Iterator[Path]:
    """Files of the package that import this one."""
    for other in sorted(PACKAGE.rglob("*.py")):
        if other != file and _importing(file).search(other.read_text(encoding="utf-8")):
            yield other


def tests_of(file: Path) -> list[list[Path]]:
    """The test files that mirror a file, the nearest first: a bug that some do not notice, the next may.

    Those of its room with its name; those that name one of its public classes and functions, or, in any
    room, import the module itself; for a private module also those of the modules that import it. Where
    there is none, all of its room.
    """
    own = file.relative_to(PACKAGE).parts[0]

    def direct(of: Path) -> list[list[Path]]:
        room, stem = of.relative_to(PACKAGE).parts[0], of.stem.strip("_")
        near = [path for path in _test_files() if path.relative_to(TESTS).parts[0] in (room, "comparison")]
        # A name such as `main` says something in the file's own room alone.
        words = [re.compile(rf"\b{name}\b") for name in _names(of) if room == own]
        return [
            [path for path in near if path.stem.startswith(f"test_{stem}")],
            [path for path in near if any(word.search(_test_files()[path]) for word in words)]
            + [path for path, text in _test_files().items() if _importing(of).search(text)],
        ]

    stages = direct(file)
    if file.stem.startswith("_") or not any(stages):
        stages.append([path for other in _importers(file) for stage in direct(other) for path in stage])
    seen: set[Path] = set()
    found = []
    for stage in stages:
        fresh = [path for path in dict.fromkeys(stage) if path not in seen]
        seen.update(fresh)
        if fresh:
            found.append(fresh)
    return found or [[path for path in _test_files() if path.relative_to(TESTS).parts[0] == own]]


def _child(source: str, tests: Sequence[Path], folder: str) -> None:
    """In a process of its own: the tests on the copy of src/, quietly; exit code 0 if all passed."""
    os.setsid()  # what the tests start ends with it
    said = os.open(f"{folder}/said", os.O_WRONLY | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.environ["PYTHONPATH"] = f"{source}{os.pathsep}{TESTS}"
    os.environ["NUMBA_CACHE_DIR"] = f"{folder}/numba"
    sys.path.insert(0, source)
    import pytest

    given = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", f"--basetemp={folder}/tmp"]
    os._exit(int(pytest.main([*given, *map(str, tests)])))


def run(source: Path, tests: Sequence[Path], limit: float) -> tuple[str, float, str]:
    """Passed, failed or late, the seconds that the tests took, and the end of what they said."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        began = time.monotonic()
        child = multiprocessing.get_context("fork").Process(target=_child, args=(str(source), tests, folder))
        child.start()
        child.join(limit)
        late = child.exitcode is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid or 0, signal.SIGKILL)
        child.join()
        seconds = time.monotonic() - began
        said = Path(folder, "said").read_text(encoding="utf-8", errors="replace")[-3000:]
    return ("late" if late else "passed" if child.exitcode in (0, 5) else "failed"), seconds, said


def places(room: str) -> list[Mutant]:
    """All bugs that can be planted in a room."""
    files = sorted(path for path in (PACKAGE / room).rglob("*.py") if path.name != "__init__.py")
    return [mutant for file in files for mutant in mutants_of(file)]


def sample(room: str, count: int, seed: int) -> list[Mutant]:
    """A random sample of these, in the order of the files."""
    found = places(room)
    return sorted(random.Random(seed).sample(found, min(count, len(found))), key=lambda m: (m.file, m.line))


def _sound(source: Path, tests: list[Path], file: Path) -> tuple[list[Path], float]:
    """The test files that pass without a bug, and how long they take together."""
    found, seconds, said = run(source, tests, 900)
    if found == "passed":
        return tests, seconds
    print(f"{said}\n{file}: its tests {found} without a bug; each alone:", flush=True)
    good = [test for test in tests if run(source, [test], 900)[0] == "passed"]
    print(f"left out: {', '.join(str(t.relative_to(TESTS)) for t in tests if t not in good)}", flush=True)
    return good, seconds


def survivors(room: str, chosen: Sequence[Mutant]) -> list[Mutant]:
    """The mutants of a room that were not noticed."""
    alive: list[Mutant] = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for shared in ("conf", "run.py", "pyproject.toml", "docs", "examples", "README.md", "benchmarks"):
            (Path(folder) / shared).symlink_to(ROOT / shared)
        sound: dict[tuple[Path, ...], tuple[list[Path], float]] = {}
        for i, mutant in enumerate(chosen, 1):
            began = time.monotonic()
            found = "passed"
            for stage in map(tuple, tests_of(mutant.file)):
                if stage not in sound:
                    sound[stage] = _sound(source, list(stage), mutant.file)
                tests, unchanged = sound[stage]
                place = source / mutant.file.relative_to(ROOT / "src")
                place.write_text(mutant.source(), encoding="utf-8")
                found = run(source, tests, 30 + 4 * unchanged)[0] if tests else "passed"
                shutil.copyfile(mutant.file, place)
                if found != "passed":
                    break
            seconds = time.monotonic() - began
            if found == "passed":
                alive.append(mutant)
            print(
                f"{room} {i}/{len(chosen)} {found} in {seconds:.0f} s: line {mutant.line}, {mutant.name}",
                flush=True,
            )
    return alive


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
        "A random sample of small bugs per room, each against the tests that mirror its file",
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    for room in args.rooms:
        if args.again:
            old = read()[room]
            same = tuple(name for name in old.alive if name in equivalent())
            chosen = [mutant for mutant in places(room) if mutant.name in set(old.alive) - set(same)]
            alive = (*same, *[mutant.name for mutant in survivors(room, chosen)])
            found = dataclasses.replace(old, alive=alive)
        else:
            chosen = sample(room, args.count, args.seed)
            alive = tuple(mutant.name for mutant in survivors(room, chosen))
            found = Row(len(chosen), len(chosen) - len(alive), alive)
        if args.seed == 0:  # the table is about one sample
            write({room: found})
        print(found.text(room), flush=True)


if __name__ == "__main__":
    main()
