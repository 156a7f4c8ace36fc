"""The reply of a chat model to one request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

CUT = "cut at the token limit"  # the error of a reply whose text is not whole
ECHO = "echo of the prompt"  # the error of a reply that repeats the prompt in place of an answer begins so


@dataclass(frozen=True)
class Reply:
    """The reply to one request: text, or None and the error.

    calls: how often the server was asked and charged for it, or may have, the calls without an answer too.
    usage_unknown: the number of them whose tokens are not known; their cost is the most they can cost.
    thoughts: a reasoning model's text before its answer; no part of `text`.
    """

    text: str | None
    error: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    cached: bool = False
    calls: int = 0
    usage_unknown: int = 0
    thoughts: str | None = None


def is_echo(reply: Reply) -> bool:
    """Whether the model repeated the prompt in place of an answer."""
    return reply.error is not None and reply.error.startswith(ECHO)


# What a reply says, and None where it cannot be read.
Reader = Callable[[Reply], object]
