"""What the code of others is made of, so that what older code made is never taken for what it makes now."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

# ragauge's parts have versions; the standard library's code is Python's own matter.
_KNOWN = {"ragauge", *sys.stdlib_module_names}


def code_digests(names: Iterable[str]) -> dict[str, str]:
    """SHA-256 (hex) of the Python files behind dotted names, by top-level package or module.

    All .py files of a package count, wherever in it the name points, since one imports another; what it
    imports from outside, and data files, do not. Nothing is imported. ragauge, the standard library and
    code without Python files have no digest.
    """
    found = {top: module_digest(top) for top in sorted({name.partition(".")[0] for name in names} - _KNOWN)}
    return {top: digest for top, digest in found.items() if digest is not None}


@lru_cache(maxsize=64)  # a process runs the code that it has once loaded
def module_digest(name: str) -> str | None:
    """SHA-256 (hex) of the Python files of a module, or of a package with all in it; None without any."""
    try:
        spec = find_spec(name)
    except ValueError:  # what was typed in, in a notebook, has no spec
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations is not None:
        folders = [Path(folder) for folder in spec.submodule_search_locations]
        files = {(file.relative_to(f).as_posix(), file) for f in folders for file in f.rglob("*.py")}
    else:
        files = {(file.name, file) for file in [Path(spec.origin or "")] if file.suffix == ".py"}
    sha = hashlib.sha256()
    for name, file in sorted(files):
        sha.update(f"{name}\x1f{hashlib.sha256(file.read_bytes()).hexdigest()}\x1e".encode())
    return sha.hexdigest() if files else None
