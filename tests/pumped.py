"""Every pattern of the code, and texts on which a weak pattern takes the square of their length in steps."""

from __future__ import annotations

import ast
import importlib
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from processes import ROOT

_METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
_AT_ONCE = ("match", "fullmatch", "search")
_SOURCE = ROOT / "src" / "ragauge"
# What is repeated beside the characters of the pattern itself.
_PUMPS = (
    *" aAx0_.,;:-=/\\\"'()[]{}<>@#&?!*$%+|~`\n\t\r\0é中",
    "a ", "A ", "Aa ", "a.", "a,", "a, ", "0,", "0.", " \n", "a\n", "\n\n", "''", '""', "a'b ", "ab", "a1", "aA1", "a-",
    "a_", "a=", "a=b ", "a: b ", "a:b@", "://", "a://", "${", "${a", "{}", "[]", "[0", "[0,", "<a ", "</a", "<a>", "- ",
    "of ", "the ", ", or ", " or ", " and ", "A and ", ", and ", "?a=b", "?code=a", "&key=", "Bearer ", "-----BEGIN ",
    "eyJ", "sk-", "\\'", "a\\", "* ", "# ", "```\n", "``` ", "1. ", "no ", "not ", "not a a ", "[1][", "%p",
    "Question ",
    "xample of the form", "examples of the form:", "{a", "{{ a", "@a", "a/", "a+", "\u2028[1]", "= ", "=\n",
)  # fmt: skip
_BEGINS = (
    "what is", "a:", "a=", "http://", "http://a:", "?a=", "Bearer", "'", '"', "x <a", "(", "-----BEGIN A PRIVATE KEY",
)  # fmt: skip


@dataclass(frozen=True)
class Use:
    """A pattern, how it is asked (such as search), and where that stands."""

    where: str
    pattern: re.Pattern[str]
    method: str

    def work(self, text: str) -> None:
        """Asks the pattern once; matches are looked for until the end."""
        if self.method in _AT_ONCE:
            getattr(self.pattern, self.method)(text)
        else:
            for _ in self.pattern.finditer(text):
                pass


def uses() -> Iterator[Use]:
    """Every use of a pattern in the code: of those in modules by the calls of their methods, and of literal ones."""
    files = sorted(_SOURCE.rglob("*.py"))
    called = {file: dict(_called(file)) for file in files}
    seen = set()
    for file in files:
        name, module = str(file.relative_to(_SOURCE)), _module(file)
        for variable, value in vars(module).items() if module else ():
            methods = called[file].get(variable) or {m for of in called.values() for m in of.get(variable, ())}
            for pattern in _patterns_in(value):
                for method in sorted(methods or {"finditer"}):
                    found = Use(f"{name}: {variable}", pattern, method)
                    if (pattern.pattern, pattern.flags, found.method) not in seen:
                        seen.add((pattern.pattern, pattern.flags, found.method))
                        yield found
        yield from _literal(file, name, module)


def _called(file: Path) -> Iterator[tuple[str, set[str]]]:
    """The names of a file's patterns, with the methods of them that it calls."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in _METHODS:
            method = node.attr if node.attr in _AT_ONCE else "finditer"
            found.setdefault(_last_name(node.value), set()).add(method)
    yield from found.items()


def _module(file: Path) -> ModuleType | None:
    parts = file.relative_to(_SOURCE.parent).with_suffix("").parts
    with suppress(ImportError):
        return importlib.import_module(".".join(part for part in parts if part != "__init__"))
    return None


def _last_name(node: ast.expr) -> str:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        if isinstance(node, ast.Attribute):
            return node.attr
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _patterns_in(value: Any) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _patterns_in(item)
    elif isinstance(value, dict):
        yield from _patterns_in(list(value.values()))


def _literal(file: Path, name: str, module: ModuleType | None) -> Iterator[Use]:
    """Patterns that are written where they are used, as far as the module alone says what they are."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) in {f"re.{method}" for method in _METHODS}):
            continue
        method = node.func.attr  # type: ignore[attr-defined]
        flags = [word.value for word in node.keywords if word.arg == "flags"]
        flags += node.args[2:3] if method not in ("sub", "subn", "split") else []
        try:
            known = vars(module) if module else {"re": re}
            parts = (compile(ast.Expression(part), str(file), "eval") for part in (node.args[0], *flags))
            pattern = re.compile(*(eval(part, dict(known)) for part in parts))
        except Exception:  # it is made of what the function is given
            continue
        if isinstance(pattern.pattern, str):
            yield Use(f"{name}:{node.lineno}", pattern, method if method in _AT_ONCE else "finditer")


def pumped(pattern: re.Pattern[str], length: int) -> Iterator[str]:
    """Texts of about so many characters: one piece again and again, between beginnings and ends."""
    words = re.findall(r"[A-Za-z]{2,}|[^\w\\\s]", re.sub(r"\\[A-Za-z]", " ", pattern.pattern))
    own = list(dict.fromkeys(words))[:40]
    for pump in dict.fromkeys([*_PUMPS, *own]):
        body = (pump * (length // len(pump) + 1))[:length]
        for begin, end in (("", ""), ("", "\0!"), ("x", "x"), ("Is ", "?"), ("<", "]"), ("[", "1")):
            yield f"{begin}{body}{end}"
    for begin in own:
        for pump in (" ", "a", "0", "a ", "A ", ".", "=", "-", "\n", ","):
            yield begin + (pump * length)[:length] + "\0"
    for begin in (
        "what is",
        "a:",
        "a=",
        "http://",
        "http://a:",
        "?a=",
        "Bearer",
        "'",
        '"',
        "x <a",
        "(",
        "-----BEGIN A PRIVATE KEY",
    ):
        for pump in (" ", "a", "0", "a1", "/", "\\a", "=", "a.", "a b"):
            yield begin + (pump * length)[:length] + "\0"


class TooSlow(Exception):
    """A pattern that was stopped."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    def stop(signum: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def seconds_of(work: Callable[[str], None], text: str, most: float) -> float:
    """Processor seconds of the work; `most` where it was stopped after that long."""
    began = time.process_time()
    try:
        with at_most(most):
            work(text)
    except TooSlow:
        return most
    return time.process_time() - began
