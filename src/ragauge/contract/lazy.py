"""Packages whose names are imported when they are asked for, so that nobody imports what is not used."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def lazily(package: str) -> Callable[[str], Any]:
    """The function `__getattr__` of a package that imports its names under `if TYPE_CHECKING:` alone (PEP 562).

    The first use of a name imports the module that the statement there names.
    """
    homes: dict[str, str] = {}

    def __getattr__(name: str) -> Any:
        if not homes:
            homes.update(_homes(package))
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return __getattr__


def _homes(package: str) -> dict[str, str]:
    """{name: module that it is imported from} of a package's own file."""
    spec = find_spec(package)
    source = spec.loader.get_source(package) if spec is not None else ""  # type: ignore[union-attr]
    return {
        alias.name: str(node.module)
        for node in ast.walk(ast.parse(source or ""))
        if isinstance(node, ast.ImportFrom) and node.level == 0 and str(node.module).startswith(f"{package}.")
        for alias in node.names
    }
