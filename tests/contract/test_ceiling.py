"""How large the core may be: what passes a ceiling is a plug-in, or something goes for it.

The core is what every job may import and every reader must know: `src/ragauge` without `plugins/`. It once held 67,500
lines, seven products in one room, and one statistic touched eighteen files. The ceilings are the sizes at which the
rooms of docs/rooms.md could be told apart again, physical lines as `wc -l` counts them, docstrings included.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from processes import ROOT

SOURCE = ROOT / "src" / "ragauge"
LINES, FILES, LINES_OF_EXPERIMENT = 43_800, 270, 7_000
# Of a function in the rooms that run, log, pool and show.
HALLWAYS = ("commands", "compare", "experiment", "findings", "show", "track")
LINES_OF_A_FUNCTION, MODULES_OF_A_FUNCTION = 60, 15


def lines(files: list[Path]) -> int:
    return sum(file.read_bytes().count(b"\n") for file in files)


def test_the_core_keeps_below_its_ceiling() -> None:
    core = [file for file in SOURCE.rglob("*.py") if "plugins" not in file.relative_to(SOURCE).parts]
    assert lines(core) <= LINES, "make it a plug-in (CONTRIBUTING.md), or delete as much"
    assert len(core) <= FILES, "let a small file join the one that imports it"
    assert lines(list((SOURCE / "experiment").rglob("*.py"))) <= LINES_OF_EXPERIMENT


def imported(node: ast.AST) -> dict[str, str]:
    """{name: module that it comes from} of the import statements in a node."""
    found = {}
    for statement in ast.walk(node):
        if isinstance(statement, ast.ImportFrom):
            found |= {alias.asname or alias.name: str(statement.module) for alias in statement.names}
        elif isinstance(statement, ast.Import):
            found |= {alias.asname or alias.name.partition(".")[0]: alias.name for alias in statement.names}
    return found


def functions(file: Path) -> Iterator[tuple[str, int, int]]:
    """Of every function of a file: its place, its lines, and the modules that its names come from."""
    module = ast.parse(file.read_text(encoding="utf-8"))
    inner = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]
    within = {id(statement) for node in inner for statement in ast.walk(node) if statement is not node}
    outer = ast.Module([s for s in ast.walk(module) if isinstance(s, ast.ImportFrom | ast.Import)
                        and id(s) not in within], [])  # fmt: skip
    of_file = imported(outer)
    for node in inner:
        own = imported(node)
        used = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
        modules = {home for name, home in {**of_file, **own}.items() if name in used} | set(own.values())
        yield f"{file.name}:{node.lineno} {node.name}", int(node.end_lineno or 0) - node.lineno + 1, len(modules)


def test_no_function_that_runs_logs_pools_or_shows_is_long_or_imports_much() -> None:
    files = [file for room in HALLWAYS for file in (SOURCE / room).rglob("*.py")]
    found = [function for file in files for function in functions(file)]
    assert len(found) > 500
    assert [place for place, length, _ in found if length > LINES_OF_A_FUNCTION] == []
    assert [place for place, _, modules in found if modules > MODULES_OF_A_FUNCTION] == []
