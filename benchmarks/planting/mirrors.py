"""Which test files may notice a bug in a file of the package."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from planting.places import PACKAGE, ROOT

TESTS = ROOT / "tests"


@cache
def _test_files() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("test_*.py"))}


def tests_of(file: Path, own: bool) -> list[Path]:
    """The test files of its room and, unless `own`, those of any room that import something of its room."""
    return _tests_of_room(file.relative_to(PACKAGE).parts[0], own)


@cache
def importing(file: Path) -> frozenset[Path]:
    """The test files that import this file of the package."""
    parts = ("ragauge", *file.relative_to(PACKAGE).with_suffix("").parts)
    itself, package = re.escape(".".join(parts)), re.escape(".".join(parts[:-1]))
    names = re.compile(rf"{itself}\b|from {package} import [^\n]*\b{parts[-1]}\b")
    return frozenset(path for path, text in _test_files().items() if names.search(text))


@cache
def _tests_of_room(room: str, own: bool) -> list[Path]:
    imports = re.compile(rf"from ragauge\.{room}[. ]|from ragauge import [^\n]*\b{room}\b")
    return [
        path
        for path, text in _test_files().items()
        if path.relative_to(TESTS).parts[0] == room or (not own and imports.search(text))
    ]
