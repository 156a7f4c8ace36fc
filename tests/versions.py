"""What code stands behind the version of every stage and component, as tests/versions.json lists it.

An entry has the version, a digest of the code, and, where a small input shows what the code does, a digest of
what comes out. `python tests/versions.py` writes the list anew. It refuses where code changed, the version did
not, and the output is another or not known: raise the version of the class, or say with `--same` that the
results are the same to the last bit.

Comments, docstrings, imports, annotations of functions, names of local variables, messages of errors and what
is logged are no code here.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import random
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import yaml

from options import option_files

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
LIST = Path(__file__).with_suffix(".json")

# What these do decides no result: errors, progress, where things are kept, how calls are carried out, how a
# stage is given what it reads. A package stands for all of its modules.
_WITHOUT_RESULTS = (
    "ragauge.contract.errors.", "ragauge.contract.progress.", "ragauge.contract.redact.",
    "ragauge.contract.measures.", "ragauge.contract.protocols.", "ragauge.contract.offers.", "ragauge.store.",
    "ragauge.llms.calls.",
    "ragauge.llms.ledger.", "ragauge.experiment.stages.stage.", "ragauge.contract.engine.",
    "ragauge.plugins.ray.",
)  # fmt: skip

# Options of which a small input shows what their code does, by the frame that holds it. None asks or reads a model.
_SHOWN_BY = {
    "chunker": ("chunks", ("none", "tokens")),
    "expander": ("contexts", ("none", "document", "neighbours", "parent")),
    "order": ("contexts", ("rank", "reverse", "long_context")),
    "measure": ("scores", ("substring", "subsequence", "words")),
    "answers": ("answer_values", ("bleu", "chrf", "contains", "em", "f1", "rouge_1", "rouge_2", "rouge_l", "usual")),
}
_SMALL = {"chunker/tokens": ("chunker.size=4", "chunker.overlap=1")}  # the documents have ten words
_WORDS = ["the", "The", "cat", "cat,", "sat.", "on", "a", "mat", "x-ray", "4.6", "U.S.", "é", "北京", "$5", "yes", "No"]
_DIGITS = 9  # of a number: its last bits are not the same on every machine


def items() -> dict[str, tuple[int, str]]:
    """{"stage/run": (version, digest of the code behind it)} of all stages and of conf's components."""
    from ragauge.experiment.stages import order

    found = {}
    for name, cls in vars(order).items():
        if isinstance(cls, type) and issubclass(cls, order.Stage) and cls is not order.Stage:
            found[f"stage/{cls.name}"] = (cls.version, _digest(cls.__module__, name))
    findings = "ragauge.findings.estimates"
    found["stage/findings"] = (importlib.import_module(findings).VERSION, _digest(findings))
    for key, target in _targets():
        module, _, name = target.rpartition(".")
        made = getattr(importlib.import_module(module), name)
        found[key] = (getattr(made, "version", 1), _digest(made.__module__))
    return dict(sorted(found.items()))


@cache
def _targets() -> tuple[tuple[str, str], ...]:
    """What conf builds: ("retriever/bm25", dotted path)."""
    found = []
    for file in option_files():
        node = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        for option in (node, *(v for v in node.values() if isinstance(v, dict))):
            target = str(option.get("_target_", ""))
            if target.startswith("ragauge."):
                found.append((f"{file.parent.name}/{file.stem}", target))
    return tuple(found)


@cache
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
        sha.update(_code(_source(module), cls).encode())
    # Without the modules' names: code that moves is the same code.
    for code in sorted(_code(_source(name)) for name in reached):
        sha.update(f"\x1e{code}".encode())
    return sha.hexdigest()[:16]


@cache
def _file(module: str) -> Path | None:
    path = SOURCE.joinpath(*module.split("."))
    found = [p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()]
    return found[0] if found else None


@cache
def _source(module: str) -> str:
    file = _file(module)
    assert file is not None, module
    return file.read_text(encoding="utf-8")


@cache
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def _imports(module: str, cls: str | None = None) -> tuple[tuple[str, str], ...]:
    """(name, module that defines it) of what a module, or one class of it, takes from ragauge."""
    text = _source(module)
    found = [(name, _defined_in(at, of)) for name, at, of in _imported(text)]
    if cls is not None:
        used = {n.id for n in ast.walk(_class(text, cls)) if isinstance(n, ast.Name)}
        found = [(name, at) for name, at in found if name in used]
    return tuple(found)


@cache
def _imported(text: str) -> tuple[tuple[str, str, str], ...]:
    """(name here, module, name there) of what a source imports from modules of ragauge."""
    return tuple(
        (alias.asname or alias.name, str(node.module), alias.name)
        for node in ast.walk(_tree(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ragauge"
        for alias in node.names
    )


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


def _class(text: str, name: str) -> ast.ClassDef:
    return next(n for n in _tree(text).body if isinstance(n, ast.ClassDef) and n.name == name)


@cache
def _code(text: str, cls: str | None = None) -> str:
    """The code of a source as a text that is the same where only what decides no result is another."""
    return _text(_normalised(_tree(text) if cls is None else _class(text, cls)))


def _normalised(top: Any) -> ast.AST:
    """A copy of the tree without docstrings, imports, error messages and log lines, its locals numbered."""
    return _Bare().visit(ast.parse(ast.unparse(top)))


class _Bare(ast.NodeTransformer):
    def __init__(self) -> None:
        self._within: set[ast.AST] = set()  # functions whose locals are numbered

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_Assign(self, node: ast.Assign) -> ast.Assign | None:
        """No list of what a module exports."""
        target = node.targets[0]
        return None if isinstance(target, ast.Name) and target.id == "__all__" else node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        """No docstring, and no line of a log."""
        if isinstance(node.value, ast.Constant):
            return None
        call = node.value.func if isinstance(node.value, ast.Call) else None
        logs = isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name) and call.value.id == "log"
        return None if logs else node

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        """Of an error its class alone."""
        call = node.exc
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id.endswith("Error"):
            return ast.Raise(call.func)
        return node

    def visit_FunctionDef(self, node: Any) -> Any:
        """Numbers the locals of a function together with those of the functions within it."""
        if node not in self._within:
            self._number(node)
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def _number(self, node: Any) -> None:
        inner = list(ast.walk(node))
        self._within.update(inner)
        arguments = [n for n in inner if isinstance(n, ast.arg)]
        bound = {n.id: None for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        fixed = {a.arg for a in arguments} | {name for n in inner if isinstance(n, ast.Global) for name in n.names}
        numbers = {name: f"_{number}" for number, name in enumerate(name for name in bound if name not in fixed)}
        for n in inner:
            if isinstance(n, ast.Name):
                n.id = numbers.get(n.id, n.id)
            elif isinstance(n, ast.Nonlocal):
                n.names = [numbers.get(name, name) for name in n.names]
            elif isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)):
                n.returns = None
        for argument in arguments:
            argument.annotation = None


def _text(node: Any) -> str:
    """A tree as a text, the same in every version of Python: without what is empty, and without contexts."""
    if isinstance(node, list):
        return f"[{','.join(map(_text, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [(name, value) for name, value in ast.iter_fields(node) if name != "ctx" and value not in (None, [])]
    if isinstance(node, ast.Constant):
        fields = [("value", node.value)]
    return f"{type(node).__name__}({','.join(f'{name}={_text(value)}' for name, value in fields)})"


def output(name: str) -> str | None:
    """The digest of what an option makes of the small input; None where that is not made."""
    group, _, option = name.partition("/")
    frame, options = _SHOWN_BY.get(group, ("", ()))
    if option not in options:
        return None
    part = _part(group, option)
    if group == "answers":
        return _frame_digest(_answer_values(part[option]))
    from hash_embedder import HashEmbedder
    from ragauge.retrieval.chunkers import TokenChunker
    from small_pipeline import SmallPipelines

    parts = {"chunker": TokenChunker(size=3, overlap=0), group: part}
    with TemporaryDirectory() as folder:
        job = SmallPipelines(Path(folder), HashEmbedder())(n_tokens=16, **parts)
        return _frame_digest(job.frame(frame))


def _answer_values(measure: Any) -> pd.DataFrame:
    """Frame `answer_values` of 60 random answers, with two references each."""
    rng = random.Random(0)
    answers, *others = ([" ".join(rng.choices(_WORDS, k=rng.randrange(12))) for _ in range(60)] for _ in range(3))
    qids = [str(number) for number in range(60)]
    references = [list(pair) for pair in zip(*others, strict=True)]
    topics = pd.DataFrame({"qid": qids, "query": "?", "answer": others[0], "answers": references})
    given = pd.DataFrame({"qid": qids, "n_tokens": 8, "answer": answers})
    return measure.measure(topics, None, None, given, None)


@cache
def _part(group: str, option: str) -> Any:
    """What conf builds for an option; of answers a mapping."""
    from hydra import compose, initialize_config_dir

    from ragauge.experiment.setup import config
    from ragauge.experiment.stages.components import instantiate_components

    config.register()
    given = f"{group}=[{option}]" if group == "answers" else f"{group}={option}"
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        cfg = compose("config", overrides=[given, *_SMALL.get(f"{group}/{option}", ())])
        return getattr(instantiate_components(cfg), group)


def _frame_digest(frame: pd.DataFrame) -> str:
    numbers = frame.select_dtypes("float").map(lambda value: f"{value:.{_DIGITS}g}")
    return hashlib.sha256(frame.assign(**numbers).to_json(orient="split").encode()).hexdigest()[:16]


def edited(known: dict[str, Any]) -> list[str]:
    """What has other code than the list says under the version that the list says."""
    return [
        name
        for name, (version, digest) in items().items()
        if name in known and known[name]["version"] == version and known[name]["code"] != digest
    ]


def changed(known: dict[str, Any]) -> list[str]:
    """What of `edited` has another output than the list says, or one that the list does not know."""
    return [name for name in edited(known) if (known[name].get("output") or "?") != output(name)]


def read() -> dict[str, Any]:
    """The committed list."""
    found: dict[str, Any] = json.loads(LIST.read_text(encoding="utf-8"))
    return found


def written(known: dict[str, Any]) -> dict[str, Any]:
    """The list of today; outputs are made anew where version or code changed."""
    rows = {}
    for name, (version, digest) in items().items():
        row = known.get(name, {})
        if (row.get("version"), row.get("code")) != (version, digest):
            made = output(name)
            row = {"version": version, "code": digest, **({"output": made} if made else {})}
        rows[name] = row
    return rows


if __name__ == "__main__":
    list_of_before = read() if LIST.exists() else {}
    forgotten = [] if "--same" in sys.argv else changed(list_of_before)
    if forgotten:
        sys.exit(f"code changed and the version did not: {', '.join(forgotten)}\n{__doc__}")
    for name in edited(list_of_before):
        print(f"{name}: other code under the version that it had")
    LIST.write_text(json.dumps(written(list_of_before), indent=1) + "\n", encoding="utf-8")
