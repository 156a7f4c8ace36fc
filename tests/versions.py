"""What code stands behind the version of every stage and component, as tests/versions.json lists it.

`python tests/versions.py` writes the list anew. It refuses where code changed under a version that did not:
raise the version of the class, or say with `--same` that the results are the same to the last bit.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import io
import json
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
LIST = Path(__file__).with_suffix(".json")

# What these do decides no result: errors, progress, where things are kept, how calls are carried out, how a
# stage is given what it reads. A package stands for all of its modules.
_WITHOUT_RESULTS = (
    "ragauge.contract.errors.", "ragauge.contract.progress.", "ragauge.contract.redact.",
    "ragauge.contract.protocols.", "ragauge.contract.context_parts.", "ragauge.contract.offers.", "ragauge.store.",
    "ragauge.llms.calls.",
    "ragauge.llms.ledger.", "ragauge.experiment.stages.stage.", "ragauge.contract.engine.",
    "ragauge.engines.",
)  # fmt: skip


def items() -> dict[str, tuple[int, str]]:
    """{"stage/run": (version, digest of the code behind it)} of all stages and of conf's components."""
    from ragauge.experiment.stages import order

    found = {}
    for name, cls in vars(order).items():
        if isinstance(cls, type) and issubclass(cls, order.Stage) and cls is not order.Stage:
            found[f"stage/{cls.name}"] = (cls.version, _digest(cls.__module__, name))
    findings = "ragauge.experiment.findings.estimates"
    found["stage/findings"] = (importlib.import_module(findings).VERSION, _digest(findings))
    for key, target in _targets():
        module, _, name = target.rpartition(".")
        made = getattr(importlib.import_module(module), name)
        found[key] = (getattr(made, "version", 1), _digest(made.__module__))
    return dict(sorted(found.items()))


def _targets() -> Iterator[tuple[str, str]]:
    """What conf builds: ("retriever/bm25", dotted path)."""
    for file in sorted((ROOT / "conf").glob("*/*.yaml")):
        node = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        for option in (node, *(v for v in node.values() if isinstance(v, dict))):
            target = str(option.get("_target_", ""))
            if target.startswith("ragauge."):
                yield f"{file.parent.name}/{file.stem}", target


def _digest(module: str, cls: str | None = None) -> str:
    """SHA-256 over the code of a module, or of one class of it, and of all that it imports from ragauge."""
    start = {module} if cls is None else {name for _, name in _imports(module, cls)}
    reached: set[str] = set()
    waiting = sorted(start)
    while waiting:
        name = waiting.pop()
        if name not in reached and not f"{name}.".startswith(_WITHOUT_RESULTS):
            reached.add(name)
            waiting += sorted({at for _, at in _imports(name)})
    sha = hashlib.sha256()
    if cls is not None:
        sha.update(_code(module, cls).encode())
    # Without the modules' names: code that moves is the same code.
    for code in sorted(map(_code, reached)):
        sha.update(f"\x1e{code}".encode())
    return sha.hexdigest()[:16]


@cache
def _file(module: str) -> Path | None:
    path = SOURCE.joinpath(*module.split("."))
    found = [p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()]
    return found[0] if found else None


@cache
def _tree(module: str) -> ast.Module:
    file = _file(module)
    assert file is not None, module
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def _imports(module: str, cls: str | None = None) -> tuple[tuple[str, str], ...]:
    """(name, module that defines it) of what a module, or one class of it, takes from ragauge."""
    found = []
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ragauge":
            for alias in node.names:
                found.append((alias.asname or alias.name, _defined_in(str(node.module), alias.name)))
    if cls is not None:
        used = {n.id for n in ast.walk(_class(module, cls)) if isinstance(n, ast.Name)}
        found = [(name, at) for name, at in found if name in used]
    return tuple(found)


def _defined_in(module: str, name: str) -> str:
    """The module in which a name that is imported from `module` stands."""
    if _file(f"{module}.{name}") is not None:
        return f"{module}.{name}"
    file = _file(module)
    if file is not None and file.name == "__init__.py":
        for alias, at in _imports(module):
            if alias == name:
                return at
    return module


def _class(module: str, name: str) -> ast.ClassDef:
    return next(n for n in _tree(module).body if isinstance(n, ast.ClassDef) and n.name == name)


def _code(module: str, cls: str | None = None) -> str:
    """The source without comments, docstrings, imports and blank lines."""
    file = _file(module)
    assert file is not None
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    top: Any = _tree(module) if cls is None else _class(module, cls)
    for node in ast.walk(top):
        gone = []
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                gone.append(first)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            gone.append(node)
        for statement in gone:
            for row in range(statement.lineno - 1, statement.end_lineno or statement.lineno):
                lines[row] = ""
    if cls is not None:
        lines = lines[top.lineno - 1 : top.end_lineno]
    return "\n".join(line.rstrip() for line in lines if line.strip())


def changed(known: dict[str, Any]) -> list[str]:
    """What has other code than the list says under the version that the list says."""
    return [
        name
        for name, (version, digest) in items().items()
        if name in known and known[name]["version"] == version and known[name]["code"] != digest
    ]


def read() -> dict[str, Any]:
    """The committed list."""
    found: dict[str, Any] = json.loads(LIST.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    forgotten = changed(read()) if LIST.exists() and "--same" not in sys.argv else []
    if forgotten:
        sys.exit(f"code changed and the version did not: {', '.join(forgotten)}\n{__doc__}")
    rows = {name: {"version": version, "code": digest} for name, (version, digest) in items().items()}
    LIST.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
