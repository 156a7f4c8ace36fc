"""The identity of a component: its name, version, parameters and foreign code.

A component is a frozen dataclass whose fields are its config keys. Fields made with `runtime()` change how the work is
done, not its result (paths, threads, batch sizes, retries). They stay out of the identity, as do those made with
`later()` at their default. A component of ragauge says its name in the class variable `component` ("bm25"), so that its
stored results are found again when the class moves to another module. A class without a name of its own is known by its
dotted path.
"""

from __future__ import annotations

import dataclasses
import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# ragauge's parts have versions; the standard library's code is Python's own matter.
_KNOWN = {"ragauge", *sys.stdlib_module_names}


def runtime(default: Any) -> Any:
    """A dataclass field that does not change the component's output."""
    return dataclasses.field(default=default, metadata={"runtime": True})


def later(default: Any) -> Any:
    """A field added to a component after results were stored: its default stays out of the identity.

    Earlier stored results and predictors therefore stay valid.
    """
    return dataclasses.field(default=default, metadata={"later": True})


def identity(component: Any) -> dict[str, Any]:
    """Everything that can change the component's output, as JSON: name, version, non-runtime fields, code.

    A component that is no dataclass (one wrapped from another library) has its own `identity()` method.
    Raises TypeError where there is neither.
    """
    own = getattr(component, "identity", None)
    if callable(own):
        return {**own(), **code_of(component)}
    if not dataclasses.is_dataclass(component) or isinstance(component, type):
        raise TypeError(f"{type(component).__name__} is neither a dataclass nor has it an identity() method")
    return {
        **named(component),
        **{name: _plain(getattr(component, name)) for name in _own_fields(component)},
        **code_of(component),
    }


def named(component: Any) -> dict[str, Any]:
    """`{"component": name, "version": number}` of a component, by its own class.

    A subclass does not inherit the name: what it makes is not what its parent makes.
    """
    cls = type(component)
    name = cls.__dict__.get("component", f"{cls.__module__}.{cls.__qualname__}")
    return {"component": name, "version": getattr(component, "version", 1)}


def code_of(component: Any) -> dict[str, dict[str, str]]:
    """`{"code": digests}` of code outside ragauge that computes the component's output; {} without any.

    It covers the component's class and, unless the component has its own `identity()`, every `_target_` in its
    fields.
    """
    names = {cls.__module__ for cls in type(component).__mro__}
    if not callable(getattr(component, "identity", None)):
        names.update(_targets([getattr(component, name) for name in _own_fields(component)]))
    digests = code_digests(names)
    return {"code": digests} if digests else {}


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
    """SHA-256 (hex) of the Python files of a module or whole package; None without any."""
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


def _own_fields(component: Any) -> list[str]:
    return [
        f.name
        for f in dataclasses.fields(component)
        if not f.metadata.get("runtime", False)
        and not (f.metadata.get("later", False) and getattr(component, f.name) == f.default)
    ]


def _targets(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(value.get("_target_"), str):
            yield value["_target_"]
        yield from _targets(list(value.values()))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _targets(item)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, Sequence):
        return [_plain(v) for v in value]
    return identity(value)
