"""A chat model asked for JSON: each distinct prompt once; a reply is read exactly or not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from ragauge.contract.protocols import CUT, Reply, Workplace
from ragauge.llms.chat_use import NOT_ASKED

# Some models wrap JSON in a code fence whatever they are told; the whole reply must be that fence.
_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.S)
OK, UNREADABLE, FAILED = "ok", "unreadable", "failed"

T = TypeVar("T")


@dataclass(frozen=True)
class Found(Generic[T]):
    """The value of a reply, or None and why (`unreadable`, with the raw reply, or `failed`)."""

    value: T | None
    status: str
    raw: str | None = None


def ask_all(
    chat: Any, prompts: Sequence[str], read: Callable[[str], T | None], store: Workplace, what: str
) -> list[Found[T]]:
    """The model's replies to the prompts, in order; equal prompts are one request.

    read: the value of a reply; None where it cannot be read. Such a reply, and one that was cut at the token
    limit, is asked for once more by the chat model, and is then `unreadable`.
    """
    found = ask_each(chat, dict.fromkeys(prompts, read), store, what)
    return [found[prompt] for prompt in prompts]


def ask_each(
    chat: Any,
    requests: Mapping[str, Callable[[str], T | None]],
    store: Workplace,
    what: str,
    guesses: Mapping[str, T] | None = None,
) -> dict[str, Found[T]]:
    """`ask_all` for distinct prompts, each with what reads its reply: {prompt: what was found}.

    guesses: possible replies, by prompt, for a dry run, which asks no LLM. With it the measure can name the requests
        that would follow. Without a guess what was not asked is `failed` there.
    """
    readers = [partial(_read, read) for read in requests.values()]
    replies = chat.ask(list(requests), store, what, readers=readers)
    guesses = guesses or {}
    return {
        prompt: Found(guesses[prompt], OK)
        if reply.error == NOT_ASKED and prompt in guesses
        else _found(reply, read(reply))
        for prompt, read, reply in zip(requests, readers, replies, strict=True)
    }


def _read(read: Callable[[str], T | None], reply: Reply) -> T | None:
    return None if reply.text is None or reply.error == CUT else read(reply.text)


def _found(reply: Reply, value: T | None) -> Found[T]:
    if reply.text is None:
        return Found(None, FAILED, reply.error)
    return Found(None, UNREADABLE, reply.text) if value is None else Found(value, OK)


def quoted(text: str) -> str:
    """The text as a JSON string: nothing in it can end what marks it as material in a prompt."""
    return json.dumps(text, ensure_ascii=False)


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


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)
