"""The reply of a chat model to one request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ragauge.contract.usage import NO_USAGE, Usage

CUT = "cut at the token limit"  # the error of a reply whose text is not whole
ECHO = "echo of the prompt"  # the error of a reply that repeats the prompt in place of an answer begins so


@dataclass(frozen=True)
class Reply:
    """The reply to one request: text, or None and the error.

    usage: that of all calls for it, the ones without an answer too.
    cached: whether it came from the ledger; its cost is then 0, and its seconds are those of the call.
    thoughts: a reasoning model's text before its answer; no part of `text`.
    """

    text: str | None
    error: str | None = None
    usage: Usage = NO_USAGE
    cached: bool = False
    thoughts: str | None = None


def is_echo(reply: Reply) -> bool:
    """Whether the model repeated the prompt in place of an answer."""
    return reply.error is not None and reply.error.startswith(ECHO)


# What a reply says, and None where it cannot be read.
Reader = Callable[[Reply], object]

A = TypeVar("A")
T = TypeVar("T")


@dataclass(frozen=True)
class Structured(Generic[A, T]):
    """A reader of replies that are JSON of `schema`, which servers that take a schema are held to."""

    read: Callable[[A], T]
    schema: Mapping[str, Any]

    def __call__(self, reply: A) -> T:
        return self.read(reply)


def schema_of(read: Callable[..., object]) -> Mapping[str, Any] | None:
    """The JSON schema of the replies that a reader reads; None for a reader of other replies."""
    return read.schema if isinstance(read, Structured) else None
