"""Which test files mirror a file of the package, the nearest first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from planting.places import PACKAGE, ROOT

TESTS = ROOT / "tests"


# It compares the code with a register, and so notices any edit whatever it does.
_LEFT_OUT = ("test_versions.py",)


@cache
def _test_files() -> dict[Path, str]:
    files = [path for path in sorted(TESTS.rglob("test_*.py")) if path.name not in _LEFT_OUT]
    return {path: path.read_text(encoding="utf-8") for path in files}


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


def tests_of(file: Path) -> list[Path]:
    """The test files that mirror a file, the nearest first.

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
    found = list(dict.fromkeys(path for stage in stages for path in stage))
    return found or [path for path in _test_files() if path.relative_to(TESTS).parts[0] == own]
