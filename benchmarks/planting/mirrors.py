"""Which test files may notice a bug in a file of the package."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from planting.places import PACKAGE, ROOT, unit_of

TESTS = ROOT / "tests"


@cache
def _test_files() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("test_*.py"))}


def tests_of(file: Path, own: bool) -> list[Path]:
    """The test files of its room or plug-in and, unless `own`, all others that import something of it."""
    return _tests_of_unit(unit_of(file), own)


@cache
def importing(file: Path) -> frozenset[Path]:
    """The test files that import this file of the package."""
    parts = ("ragauge", *file.relative_to(PACKAGE).with_suffix("").parts)
    itself, package = re.escape(".".join(parts)), re.escape(".".join(parts[:-1]))
    names = re.compile(rf"{itself}\b|from {package} import [^\n]*\b{parts[-1]}\b")
    return frozenset(path for path, text in _test_files().items() if names.search(text))


@cache
def _tests_of_unit(unit: str, own: bool) -> list[Path]:
    package, _, name = f"ragauge/{unit}".rpartition("/")
    package = package.replace("/", r"\.")
    imports = re.compile(rf"from {package}\.{name}[. ]|from {package} import [^\n]*\b{name}\b")
    return [
        path
        for path, text in _test_files().items()
        if path.is_relative_to(TESTS / unit) or (not own and imports.search(text))
    ]
