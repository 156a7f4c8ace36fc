"""Where a small bug can be planted in the package, and the source with it, or with probes at all places.

Half of a sample are slips of the kinds that colleagues make (`KINDS`): a filter forgotten, the first taken for
the last, a weight left out. The other half are changes of a single sign: a comparison, a number, a condition.
"""

from __future__ import annotations

import ast
import dataclasses
import random
import re
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


# Keywords that only check what code relies on, or repeat a default so that another default would not matter.
_UNSEEN = ("strict", "validate", "encoding", "dtype", "check_exact", "stacklevel")

# How a figure is laid out: people look at it, tests do not.
_LAYOUT = (
    "alpha", "color", "edgecolor", "facecolor", "figsize", "fontsize", "fontweight", "ha", "linestyle", "linewidth",
    "loc", "lw", "marker", "ms", "pad", "rotation", "s", "va", "xytext", "zorder", "bbox_to_anchor", "frameon",
)  # fmt: skip

SIGN = "sign"
KINDS = {
    "filter": "who is counted: a filter, a dropping of rows or a condition of a comprehension is left out",
    "group": "the unit: a key of a grouping or of duplicates is left out, rows are counted where topics are",
    "pairing": "what is subtracted from what: common topics are not looked for, a join keeps other rows",
    "order": "which of two wins: first for last, smallest for largest, later for earlier, one branch for the other",
    "weight": "a weight or a correction is left out",
    "unit": "another unit: a thousand for one, hundredths for shares",
    "key": "a part of a key or of what identifies something is left out",
    "seed": "a seed is ignored",
    SIGN: "a single sign: a comparison, a number, a condition, an argument, a statement",
}
_UNITS: dict[complex, float] = {
    1000: 1,
    1_000_000: 1000,
    1024: 1000,
    100: 1,
    60: 1,
    3600: 60,
    86400: 3600,
    1e-3: 1,
    1e-9: 1e-6,
}
_OTHER_WORDS = {
    "first": "last", "last": "first", "left": "right", "right": "left", "min": "max", "max": "min",
    "inner": "outer", "ascending": "descending", "idxmin": "idxmax", "idxmax": "idxmin",
}  # fmt: skip
_OTHER_CALLS = {
    "first": "last", "last": "first", "head": "tail", "tail": "head", "idxmin": "idxmax", "idxmax": "idxmin",
    "argmin": "argmax", "argmax": "argmin", "nsmallest": "nlargest", "nlargest": "nsmallest",
    "cummax": "cummin", "cummin": "cummax", "bisect_left": "bisect_right",
    "bisect_right": "bisect_left",
}  # fmt: skip
_DROPPING = ("dropna", "drop_duplicates", "query", "unique", "truncate", "clip")
_COMMON = ("intersection", "reindex")
_KEYED = re.compile(r"key|identity|identif|param|fingerprint|digest|signature|served|described", re.IGNORECASE)
_SEEDED = ("default_rng", "Random", "RandomState", "SeedSequence", "spawn_key", "shuffled")
_WEIGHTS = re.compile(r"weight|correct|ddof|adjust|offset|prior|shrink")


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
    kind: str  # of KINDS
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

    def _plant(self, node: ast.expr | ast.stmt, text: str, kind: str = SIGN) -> None:
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
                _short(text),
                start,
                end,
                text,
                isinstance(node, ast.stmt),
                self.at_call,
                kind,
            )
        )

    def _changed(self, node: ast.expr, kind: str = SIGN, **changes: object) -> None:
        fields: dict[str, Any] = {name: getattr(node, name) for name in node._fields} | changes
        self._plant(node, f"({ast.unparse(ast.fix_missing_locations(type(node)(**fields)))})", kind)

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
            weighing = kind in (ast.Mult, ast.Div)
            self._plant(node, f"({ast.unparse(node.left)})", "weight" if weighing else SIGN)
            if weighing:
                self._unit(node)
        mapping = any(isinstance(side, ast.Dict | ast.DictComp) for side in (node.left, node.right))
        if kind is ast.BitOr and mapping and self.at_call:  # of sets and masks the order is the same
            self._changed(node, "order", left=node.right, right=node.left)
        self.generic_visit(node)

    def _unit(self, node: ast.BinOp) -> None:
        for side in ("left", "right"):
            value = getattr(node, side)
            if isinstance(value, ast.Constant) and value.value in _UNITS:
                self._changed(node, "unit", **{side: ast.Constant(_UNITS[value.value])})

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
        swapped = _CALLED | _OTHER_CALLS
        if name in swapped:
            other = (
                ast.Attribute(node.func.value, swapped[name], ast.Load())
                if isinstance(node.func, ast.Attribute)
                else ast.Name(swapped[name], ast.Load())
            )
            self._changed(node, "order" if name in _OTHER_CALLS or name in ("min", "max") else SIGN, func=other)
        if "Error" not in name:
            for i, keyword in enumerate(node.keywords):
                if keyword.arg is not None and keyword.arg not in (*_UNSEEN, *_LAYOUT):
                    self._argument(node, i, keyword.arg)
        if isinstance(node.func, ast.Attribute):
            self._method(node, node.func)
        if name in ("average", "bincount") and len(node.args) > 1:
            self._changed(node, "weight", args=node.args[:1])
        if name in _SEEDED and node.args:
            self._changed(node, "seed", args=[ast.Constant(0)], keywords=[])
        read = (keyword.value for keyword in node.keywords if keyword.arg not in (*_UNSEEN, *_LAYOUT))
        for part in (node.func, *node.args, *read):
            self.visit(part)

    def _argument(self, node: ast.Call, i: int, name: str) -> None:
        value = node.keywords[i].value
        kind = "weight" if _WEIGHTS.search(name) else "group" if name in ("subset", "by", "level") else SIGN
        self._changed(node, kind, keywords=node.keywords[:i] + node.keywords[i + 1 :])
        if name in ("seed", "random_state") and not isinstance(value, ast.Constant):
            self._keyword(node, i, ast.Constant(0), "seed")
        if isinstance(value, ast.Constant) and value.value in _OTHER_WORDS:
            kind = "pairing" if name == "how" else "order"
            self._keyword(node, i, ast.Constant(_OTHER_WORDS[value.value]), kind)
        if name == "how" and isinstance(value, ast.Constant) and value.value == "left":
            self._keyword(node, i, ast.Constant("inner"), "pairing")
        if name in ("on", "by", "subset", "level") and isinstance(value, ast.List) and len(value.elts) > 1:
            self._keyword(node, i, ast.List(value.elts[1:], ast.Load()), "group")
            self._keyword(node, i, ast.List(value.elts[:-1], ast.Load()), "group")

    def _keyword(self, node: ast.Call, i: int, value: ast.expr, kind: str) -> None:
        changed = ast.keyword(node.keywords[i].arg, value)
        self._changed(node, kind, keywords=[*node.keywords[:i], changed, *node.keywords[i + 1 :]])

    def _method(self, node: ast.Call, method: ast.Attribute) -> None:
        if method.attr in _DROPPING:
            self._plant(node, f"({ast.unparse(method.value)})", "filter")
        if method.attr in _COMMON:
            self._plant(node, f"({ast.unparse(method.value)})", "pairing")
        if method.attr == "nunique":
            self._changed(node, "group", func=ast.Attribute(method.value, "count", ast.Load()))
        if method.attr in ("groupby", "drop_duplicates") and node.args:
            keys = node.args[0]
            if isinstance(keys, ast.List) and len(keys.elts) > 1:
                for fewer in (keys.elts[1:], keys.elts[:-1]):
                    self._changed(node, "group", args=[ast.List(fewer, ast.Load()), *node.args[1:]])

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Load) and self.at_call:
            at = node.slice
            if isinstance(at, ast.Constant) and at.value == 0 and at.value is not False:
                self._changed(node, "order", slice=ast.Constant(-1))
            if isinstance(at, ast.UnaryOp) and ast.unparse(at) == "-1":
                self._changed(node, "order", slice=ast.Constant(0))
            if self._filters(at):
                frame = node.value
                whole = frame.value if isinstance(frame, ast.Attribute) and frame.attr == "loc" else frame
                self._plant(node, f"({ast.unparse(whole)})", "filter")
        self.generic_visit(node)

    @staticmethod
    def _filters(at: ast.expr) -> bool:
        """Whether rows are chosen by what holds of them."""
        if isinstance(at, ast.UnaryOp):
            return isinstance(at.op, ast.Invert)
        called = at.func.attr if isinstance(at, ast.Call) and isinstance(at.func, ast.Attribute) else ""
        return isinstance(at, ast.Compare) or called in ("isin", "notna", "isna", "eq", "ne", "gt", "ge", "lt", "le")

    def _comprehended(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        for i, loop in enumerate(node.generators):
            for j in range(len(loop.ifs)):
                fewer = ast.comprehension(loop.target, loop.iter, loop.ifs[:j] + loop.ifs[j + 1 :], loop.is_async)
                generators = [*node.generators[:i], fewer, *node.generators[i + 1 :]]
                self._changed(node, "filter", generators=generators)
        if isinstance(node, ast.SetComp):
            self._plant(node, f"[{ast.unparse(node)[1:-1]}]", "group")
        self.generic_visit(node)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehended

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._changed(node, "order", body=node.orelse, orelse=node.body)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        if self.at_call and all(key is None for key in node.keys) and len(node.keys) == 2:
            self._changed(node, "order", values=node.values[::-1])
        if self.at_call and len(node.keys) > 1 and self.scope and _KEYED.search(self.scope[-1]):
            for i in range(len(node.keys)):
                keys, values = node.keys[:i] + node.keys[i + 1 :], node.values[:i] + node.values[i + 1 :]
                self._changed(node, "key", keys=keys, values=values)
        self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        if isinstance(node.ctx, ast.Load) and self.scope and _KEYED.search(self.scope[-1]) and len(node.elts) > 1:
            for i in range(len(node.elts)):
                self._changed(node, "key", elts=[*node.elts[:i], ast.Constant(0), *node.elts[i + 1 :]])
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
    """All mutants of a file; some may not compile."""
    found: list[Mutant] = []
    alike: Counter[str] = Counter()
    for mutant in _Places(file).found:
        alike[mutant.name] += 1
        found.append(dataclasses.replace(mutant, nth=alike[mutant.name]))
    return found


def units() -> list[str]:
    """The rooms and the plug-ins, as folders of the package."""
    rooms = [path.name for path in sorted(PACKAGE.iterdir()) if (path / "__init__.py").exists()]
    plugins = sorted((PACKAGE / "plugins").iterdir())
    return [
        *(room for room in rooms if room != "plugins"),
        *(f"plugins/{path.name}" for path in plugins if (path / "__init__.py").exists()),
    ]


def unit_of(file: Path) -> str:
    """The room or plug-in that holds a file of the package."""
    parts = file.relative_to(PACKAGE).parts
    return "/".join(parts[: 2 if parts[0] == "plugins" else 1])


def places(unit: str) -> list[Mutant]:
    """All bugs that can be planted in a room or a plug-in."""
    return [mutant for file in sorted((PACKAGE / unit).rglob("*.py")) for mutant in mutants_of(file)]


def sample(unit: str, count: int, seed: int) -> list[Mutant]:
    """A random sample of these in the order of the files: half of them slips, if there are as many."""
    drawn = places(unit)
    random.Random(seed).shuffle(drawn)
    ready = (mutant for mutant in drawn if _compiles(mutant.source(), mutant.file))
    slips, signs = list[Mutant](), list[Mutant]()
    for mutant in ready:
        (signs if mutant.kind == SIGN else slips).append(mutant)
        if len(slips) >= count // 2 and len(signs) >= count:
            break
    chosen = slips[: count // 2]
    chosen += signs[: count - len(chosen)]
    return sorted(chosen, key=lambda mutant: (mutant.file, mutant.line))


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
