"""A chat model asked for JSON: each distinct prompt once, and what cannot be read once more."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ragauge.contract.protocols import Reply, Workplace
from ragauge.llms.chat_use import NOT_ASKED
from ragauge.llms.replies import CUT

OK, UNREADABLE, FAILED = "ok", "unreadable", "failed"

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
    found = ask_each(chat, dict.fromkeys(prompts, read), store, what, salt)
    return [found[prompt] for prompt in prompts]


def ask_each(
    chat: Any,
    requests: Mapping[str, Callable[[str], T | None]],
    store: Workplace,
    what: str,
    salt: str = "",
    guesses: Mapping[str, T] | None = None,
) -> dict[str, Found[T]]:
    """`ask_all` for distinct prompts, each with what reads its reply: {prompt: what was found}.

    guesses: what a reply may say, by prompt, for a dry run, which asks nobody: with it the measure can tell
    the requests that would follow. Without a guess what was not asked is `failed` there.
    """
    found = _asked(chat, requests, store, what, salt, guesses or {})
    again = {prompt: read for prompt, read in requests.items() if found[prompt].status == UNREADABLE}
    if again:
        salt = f"{salt}, once more" if salt else "once more"
        found |= _asked(chat, again, store, what, salt, guesses or {})
    return found


def _asked(
    chat: Any,
    requests: Mapping[str, Callable[[str], T | None]],
    store: Workplace,
    what: str,
    salt: str,
    guesses: Mapping[str, T],
) -> dict[str, Found[T]]:
    replies = chat.ask(list(requests), store, what, salt=salt)
    return {
        prompt: Found(guesses[prompt], OK) if reply.error == NOT_ASKED and prompt in guesses else _found(reply, read)
        for (prompt, read), reply in zip(requests.items(), replies, strict=True)
    }


def _found(reply: Reply, read: Callable[[str], T | None]) -> Found[T]:
    if reply.text is None:
        return Found(None, FAILED, reply.error)
    value = None if reply.error == CUT else read(reply.text)
    return Found(None, UNREADABLE, reply.text) if value is None else Found(value, OK)


def quoted(text: str) -> str:
    """The text as a JSON string: nothing in it can end what marks it as material in a prompt."""
    return json.dumps(text, ensure_ascii=False)
