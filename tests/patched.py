"""A module of the standard library as one module of ragauge alone sees it."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any


def instead_of(module: ModuleType, **replaced: Any) -> SimpleNamespace:
    """`module` with some of its functions replaced: unlike a patch of the module itself, threads that other
    tests have left running do not see them.
    """
    return SimpleNamespace(**{**vars(module), **replaced})
