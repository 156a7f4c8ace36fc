"""A chat model asked for JSON: each distinct prompt once, and what cannot be read once more."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ragauge.contract.protocols import Reply, Workplace
from ragauge.llms.replies import CUT

UNREADABLE, FAILED = "unreadable", "failed"
# Some models wrap JSON in a code fence whatever they are told; the whole reply must be that fence.
_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.S)

T = TypeVar("T")


@dataclass(frozen=True)
class Found(Generic[T]):
    """What a reply says: its value, or None and why (`unreadable`, with the raw reply, or `failed`)."""

    value: T | None
    status: str
    raw: str | None = None


def ask_all(
    chat: Any,
    prompts: Sequence[str],
    read: Callable[[str], T | None],
    store: Workplace,
    what: str,
    salt: str = "",
) -> list[Found[T]]:
    """What the model says to each prompt, in order; equal prompts are one request.

    read: the value of a reply; None where it cannot be read. Such a reply, and one that was cut at the token
    limit, is asked for once more, and is then `unreadable`. `salt` tells a deliberate repetition from the
    same request.
    """
    return ask_each(chat, [(prompt, read) for prompt in prompts], store, what, salt)


def ask_each(
    chat: Any,
    prompts: Sequence[tuple[str, Callable[[str], T | None]]],
    store: Workplace,
    what: str,
    salt: str = "",
) -> list[Found[T]]:
    """`ask_all` where each prompt has its own way to be read, such as one that knows how many are due."""
    reads = dict(prompts)
    found = _asked(chat, reads, store, what, salt)
    again = {prompt: read for prompt, read in reads.items() if found[prompt].status == UNREADABLE}
    if again:
        found |= _asked(chat, again, store, what, f"{salt}, once more" if salt else "once more")
    return [found[prompt] for prompt, _ in prompts]


def _asked(
    chat: Any, reads: Mapping[str, Callable[[str], T | None]], store: Workplace, what: str, salt: str
) -> dict[str, Found[T]]:
    replies = chat.ask(list(reads), store, what, salt=salt)
    pairs = zip(reads.items(), replies, strict=True)
    return {prompt: _found(reply, read) for (prompt, read), reply in pairs}


def _found(reply: Reply, read: Callable[[str], T | None]) -> Found[T]:
    if reply.text is None:
        return Found(None, FAILED, reply.error)
    value = None if reply.error == CUT else read(reply.text)
    return Found(None, UNREADABLE, reply.text) if value is None else Found(value, "ok")


def json_of(reply: str) -> Any:
    """The JSON value that the whole reply is, a code fence around it allowed; None if it is anything else.

    An object that repeats a key is not one.
    """
    reply = reply.strip()
    fenced = _FENCE.fullmatch(reply)
    try:
        return json.loads(fenced.group(1) if fenced else reply, object_pairs_hook=_distinct)
    except (ValueError, RecursionError):
        return None


def quoted(text: str) -> str:
    """The text as a JSON string: it cannot end what marks it as material in a prompt."""
    return json.dumps(text, ensure_ascii=False)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)
