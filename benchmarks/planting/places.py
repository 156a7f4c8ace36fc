"""Where a small bug can be planted in the package, and the source with it, or with probes at all places."""

from __future__ import annotations

import ast
import dataclasses
import random
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "ragauge"

_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_CALLED = {
    "min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum",
    "floor": "ceil", "ceil": "floor", "sum": "mean", "mean": "sum", "sqrt": "abs", "cumsum": "abs",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One planted bug: the characters from `start` to `end` of a file are replaced by `text`."""

    file: Path
    where: str  # the function or class, dotted
    line: int
    before: str
    after: str
    start: int
    end: int
    text: str
    is_statement: bool
    at_call: bool  # runs where a function is called, not at import, and is not compiled by Numba
    nth: int = 1  # of those that are told by the same words

    @property
    def name(self) -> str:
        """What identifies it while lines move."""
        which = f" ({self.nth})" if self.nth > 1 else ""
        file = self.file.relative_to(PACKAGE).as_posix()
        return f"{file}:{self.where}: {self.before} -> {self.after}{which}"

    def source(self) -> str:
        """The file with the bug."""
        text = self.file.read_text(encoding="utf-8")
        return text[: self.start] + self.text + text[self.end :]


def _short(text: str) -> str:
    return " ".join(text.split())[:90]


class _Places(ast.NodeVisitor):
    """Collects the mutants of a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.text = file.read_text(encoding="utf-8")
        self.starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line.encode()))
        self.bytes = self.text.encode()
        self.scope: list[str] = []
        self.at_call = False
        self.found: list[Mutant] = []
        self.visit(ast.parse(self.text))

    def _at(self, line: int, column: int) -> int:
        return len(self.bytes[: self.starts[line - 1] + column].decode())

    def _plant(self, node: ast.expr | ast.stmt, text: str, after: str | None = None) -> None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start, end = (
            self._at(node.lineno, node.col_offset),
            self._at(node.end_lineno, node.end_col_offset),
        )
        before = _short(ast.unparse(node))
        self.found.append(
            Mutant(
                self.file,
                ".".join(self.scope) or "module",
                node.lineno,
                before,
                _short(after or text),
                start,
                end,
                text,
                isinstance(node, ast.stmt),
                self.at_call,
            )
        )

    def _changed(self, node: ast.expr, **changes: object) -> None:
        fields = {name: getattr(node, name) for name in node._fields} | changes
        self._plant(node, f"({ast.unparse(ast.fix_missing_locations(type(node)(**fields)))})")

    def _inside(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.scope.append(node.name)
        body = node.body
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]  # the docstring
        if not isinstance(node, ast.ClassDef):
            for default in [*node.args.defaults, *[d for d in node.args.kw_defaults if d is not None]]:
                self.visit(default)
        before = self.at_call
        if not isinstance(node, ast.ClassDef):
            self.at_call = not any("jit" in ast.unparse(decorator) for decorator in node.decorator_list)
        for statement in body:
            self.visit(statement)
        self.at_call = before
        self.scope.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _inside

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'"):
            return
        self._plant(node.test, "(False)")
        if not isinstance(node.test, ast.Compare):  # a comparison is turned round below
            self._plant(node.test, f"(not ({ast.unparse(node.test)}))")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        kind = type(node.ops[0])
        if kind in _COMPARED:
            self._changed(node, ops=[_COMPARED[kind](), *node.ops[1:]])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        kind = type(node.op)
        words = (ast.JoinedStr, ast.List, ast.Tuple)
        text = any(
            isinstance(side, words) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
            for side in (node.left, node.right)
        )
        if kind in _COMPUTED and not text:
            self._changed(node, op=_COMPUTED[kind]())
            self._plant(node, f"({ast.unparse(node.left)})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._changed(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            self._plant(node, f"({ast.unparse(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._plant(node, str(not node.value))
        elif isinstance(node.value, int | float):
            self._plant(node, str(node.value + 1))

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _CALLED:
            other = (
                ast.Attribute(node.func.value, _CALLED[name], ast.Load())
                if isinstance(node.func, ast.Attribute)
                else ast.Name(_CALLED[name], ast.Load())
            )
            self._changed(node, func=other)
        if "Error" not in name:
            for i, keyword in enumerate(node.keywords):
                if keyword.arg is not None:
                    self._changed(node, keywords=node.keywords[:i] + node.keywords[i + 1 :])
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Messages are not mutated."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """What guards are is seen where their condition is False."""

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call | ast.Await):
            self._plant(node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._plant(node, "pass")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._plant(node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._plant(node, "pass")


def mutants_of(file: Path) -> list[Mutant]:
    """All mutants of a file that compile."""
    found: list[Mutant] = []
    alike: Counter[str] = Counter()
    for mutant in _Places(file).found:
        if not _compiles(mutant.source(), file):
            continue
        alike[mutant.name] += 1
        found.append(dataclasses.replace(mutant, nth=alike[mutant.name]))
    return found


def places(room: str) -> list[Mutant]:
    """All bugs that can be planted in a room."""
    files = sorted(path for path in (PACKAGE / room).rglob("*.py") if path.name != "__init__.py")
    return [mutant for file in files for mutant in mutants_of(file)]


def sample(room: str, count: int, seed: int) -> list[Mutant]:
    """A random sample of these, in the order of the files."""
    found = places(room)
    return sorted(random.Random(seed).sample(found, min(count, len(found))), key=lambda m: (m.file, m.line))


def with_probes(file: Path, numbered: Mapping[int, Mutant]) -> tuple[str, set[int]]:
    """The file, which tells `mutants_reached` the number of each of these mutants whose place is reached.

    Also the numbers of those whose place can have a probe: not at import, nor in code for Numba, nor in a
    pattern of `match`.
    """
    text = file.read_text(encoding="utf-8")
    able = {i: m for i, m in numbered.items() if m.at_call and _compiles(_with_probes(text, {i: m}), file)}
    return _with_probes(text, able), set(able)


def _with_probes(text: str, numbered: Mapping[int, Mutant]) -> str:
    inserted: list[tuple[int, int, int, str]] = []  # of the same place ends come first, then the wider one
    for number, mutant in numbered.items():
        told = f"__import__('mutants_reached').reached({number})"
        if mutant.is_statement:
            inserted.append((mutant.start, 1, -mutant.end - 1, f"{told}; "))
        else:
            inserted.append((mutant.start, 1, -mutant.end, f"({told} or ("))
            inserted.append((mutant.end, 0, 0, "))"))
    for place, _, _, code in sorted(inserted, reverse=True):
        text = text[:place] + code + text[place:]
    return text


def _compiles(text: str, file: Path) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            compile(text, str(file), "exec")
        except SyntaxError:
            return False
    return True
