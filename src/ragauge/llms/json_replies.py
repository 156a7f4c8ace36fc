"""Asks a chat model for JSON, each distinct prompt once; reads unambiguous replies alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from ragauge.contract.replies import CUT, Reader, Reply, Structured, is_echo, schema_of
from ragauge.contract.workplace import Workplace
from ragauge.llms.chat_use import NOT_ASKED
from ragauge.texts.surrogates import without_surrogates

_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.DOTALL)
# The smallest parts of JSON as models write it: a text in quotation marks of any kind, a sign, anything else.
_PART = re.compile(
    r""""(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|[“”](?P<curved>(?:[^”\\]|\\.)*)”"""
    r"""|(?P<sign>[{}\[\],:])|[^\s{}\[\],:"'“”]+|["'“”]""",
    re.DOTALL,
)
_WORDS = {"True": "true", "False": "false", "None": "null"}  # of Python
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LONGEST = 100_000  # characters of a reply that are searched for an object
OK, UNREADABLE, FAILED = "ok", "unreadable", "failed"

T = TypeVar("T")


@dataclass(frozen=True)
class Found(Generic[T]):
    """The value of a reply, or None with a status (`unreadable`, with the raw reply, or `failed`)."""

    value: T | None
    status: str
    raw: str | None = None


def ask_all(
    chat: Any, prompts: Sequence[str], read: Callable[[str], T | None], store: Workplace, what: str
) -> list[Found[T]]:
    """The model's replies to the prompts, in order; equal prompts are one request.

    read: the value of a reply; None where it cannot be read. Such a reply, and one that was cut at the token
    limit, is asked for once more by the chat model, and is then `unreadable`. A `Structured` reader has the schema
    that servers are held to.
    """
    found = ask_each(chat, dict.fromkeys(prompts, read), store, what)
    return [found[prompt] for prompt in prompts]


def ask_each(
    chat: Any,
    requests: Mapping[str, Callable[[str], T | None]],
    store: Workplace,
    what: str,
    guesses: Mapping[str, T] | None = None,
    read_cut: Callable[[str], T | None] | None = None,
) -> dict[str, Found[T]]:
    """`ask_all` for distinct prompts, each with its own reader: {prompt: Found}.

    read_cut: the value of a reply that was cut at the token limit; by default such a reply cannot be read.

    guesses: possible replies, by prompt, for a dry run, which asks no LLM. With it the measure can name the requests
        that would follow. Without a guess what was not asked is `failed` there.
    """
    replies = chat.ask(list(requests), store, what, readers=[_of_text(read, read_cut) for read in requests.values()])
    guesses = guesses or {}
    return {
        prompt: Found(guesses[prompt], OK)
        if reply.error == NOT_ASKED and prompt in guesses
        else _found(reply, _read(read, read_cut, reply))
        for (prompt, read), reply in zip(requests.items(), replies, strict=True)
    }


def _of_text(read: Callable[[str], object], read_cut: Callable[[str], object] | None) -> Reader:
    """The reader of replies for a reader of their texts, and one of cut texts."""
    schema, whole = schema_of(read), partial(_read, read, read_cut)
    return whole if schema is None else Structured(whole, schema)


def _read(read: Callable[[str], T | None], read_cut: Callable[[str], T | None] | None, reply: Reply) -> T | None:
    if reply.text is None:
        return None
    if reply.error == CUT:
        return None if read_cut is None else read_cut(reply.text)
    return read(reply.text)


def _found(reply: Reply, value: T | None) -> Found[T]:
    if reply.text is None:
        return Found(None, UNREADABLE if is_echo(reply) else FAILED, reply.error)
    return Found(None, UNREADABLE, reply.text) if value is None else Found(value, OK)


def quoted(text: str) -> str:
    """The text as a JSON string, which cannot break out of its quotes in a prompt."""
    return json.dumps(text, ensure_ascii=False)


def json_of(reply: str) -> Any:
    """The reply as a JSON value, or the single object in it; None for no or several objects.

    Text and code fences may stand around the object. It may be written as Python writes it: single quotation marks, a
    comma behind the last entry, line ends within a text. Equal objects are one. An object that repeats a key is not
    read, nor is anything from a reply whose last bracket is open.
    """
    try:
        value = _value(reply)
        # An escape such as \ud83d may be half of a surrogate pair, which no file can hold.
        return (
            json.loads(without_surrogates(json.dumps(value, ensure_ascii=False))) if _SURROGATE.search(reply) else value
        )
    except RecursionError:
        return None


def _value(reply: str) -> Any:
    fenced = _FENCE.fullmatch(reply.strip())
    try:
        return json.loads(fenced[1] if fenced else reply, object_pairs_hook=_distinct)
    except ValueError:
        found = [value for value in _objects(reply[:_LONGEST]) if value is not None]
    return found[0] if found and all(value == found[0] for value in found) else None


def _objects(reply: str) -> list[Any]:
    """The outermost objects, and lists of objects, of a reply; [] if one is not closed."""
    found: list[Any] = []
    written: list[str] = []  # of the object that is open, as JSON
    depth = 0
    at = 0
    while at < len(reply):
        if not depth:
            at = reply.find("{", at)
            if at < 0:
                break
        part = _PART.match(reply, at)
        if part is None:  # white space
            at += 1
            continue
        at = part.end()
        written.append(_as_json(part))
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(part["sign"] or "", 0)
        if not depth:
            found.append(_loaded(written))
            written = []
    return found if depth == 0 else []


def _as_json(part: re.Match[str]) -> str:
    kind = part.lastgroup
    if kind is None or kind == "sign":
        return _WORDS.get(part.group(), part.group())
    text = part[kind]
    if kind == "single":
        text = text.replace("\\'", "'").replace('"', '\\"') if '\\"' not in text else text.replace("\\'", "'")
    return f'"{text}"'


def _loaded(written: Sequence[str]) -> Any:
    """The value of these parts; None for invalid JSON."""
    kept = [one for one, after in zip(written, [*written[1:], ""], strict=True) if one != "," or after not in "}]"]
    try:
        return json.loads(" ".join(kept), strict=False, object_pairs_hook=_distinct)
    except ValueError:
        return None


def whole_number(value: object) -> int | None:
    """A JSON value as integer, also `"5"` and 5.0; None for anything else."""
    if isinstance(value, str):
        text = value.strip()
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value == value // 1 else None


def truth_of(value: object) -> bool | None:
    """A JSON value as bool, also `"true"` and `"no"`; None for anything else."""
    if isinstance(value, str):
        return {"true": True, "yes": True, "false": False, "no": False}.get(value.strip().casefold())
    return value if isinstance(value, bool) else None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)
