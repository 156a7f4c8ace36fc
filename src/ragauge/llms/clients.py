"""Shared by all HTTP clients of a job: the event loop, and hooks that guard them.

No redirection is followed, no response read beyond 16 MiB. The caller sets the time limit.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import zlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from ragauge.contract.errors import ConfigError
from ragauge.contract.redact import redacted_beginning
from ragauge.contract.visible import visible

T = TypeVar("T")

LONGEST = 16 << 20  # bytes of a response, unpacked; thirty contexts of a page each have some 100 KB
_LONGEST_ERROR = 64 << 10  # bytes of a response with an error's status; what follows is not read
_MOST_PARTS = 250_000  # objects and lists; clients take a hundred microseconds and 2 KB for each
_SHOWN = 300  # characters of a header


class BadResponse(Exception):
    """A response that is too long, has too many parts, or is packed in a way that is not unpacked here."""


class Redirected(BadResponse):
    """A response that sends to another address, which would get key and prompt if it were followed."""


Hooks = dict[str, list[Callable[[Any], Awaitable[None]]]]


def hooks() -> Hooks:
    """Event hooks for an `AsyncClient` of httpx or of httpx2, which openai uses from version 3.

    They raise Redirected and BadResponse.
    """
    return {"request": [_ask_for_plain], "response": [_read]}


def guard(model: Any) -> Any:
    """The LangChain chat model, its asynchronous client's hooks set.

    ConfigError where a client of langchain_openai or langchain_ollama keeps its HTTP client elsewhere. Those
    of other packages are guarded where they keep it in the same place.
    """
    owner = getattr(model, "root_async_client", None) or getattr(model, "_async_client", None)
    client: Any = getattr(owner, "_client", None)
    if hasattr(client, "event_hooks"):
        client.event_hooks = hooks()
    elif type(model).__module__.startswith(("langchain_openai.", "langchain_ollama.")):
        package = type(model).__module__.partition(".")[0]
        raise ConfigError(f"chat: this version of {package} is not known: redirections could not be refused")
    return model


async def _ask_for_plain(request: Any) -> None:
    request.headers["Accept-Encoding"] = "identity"


async def _read(response: Any) -> None:
    """Puts the bytes of the body, unpacked, in the place of its stream."""
    if 300 <= response.status_code < 400:
        location = response.headers.get("location", "an address that it does not name")
        raise Redirected(
            f"sends to {visible(redacted_beginning(location, _SHOWN), one_line=True)} (status {response.status_code})"
        )
    failed = response.status_code >= 400
    most = _LONGEST_ERROR if failed else LONGEST
    packing = response.headers.pop("content-encoding", "identity").strip().lower()
    unpack = zlib.decompressobj(wbits=31).decompress if packing in ("gzip", "x-gzip") else None
    if unpack is None and packing not in ("", "identity") and not failed:
        shown = visible(redacted_beginning(packing, _SHOWN), one_line=True)
        raise BadResponse(f"the response is packed as '{shown}', and was asked for as it is")
    data, n_received = bytearray(), 0
    try:
        async for piece in response.stream:
            n_received += len(piece)
            data += unpack(piece, most + 1 - len(data)) if unpack else piece
            if max(n_received, len(data)) > most:
                break
    except zlib.error as error:
        raise BadResponse(f"the response cannot be unpacked: {error}") from None
    if max(n_received, len(data)) > most and not failed:
        raise BadResponse(f"the response is longer than {LONGEST >> 20} MiB")
    if data.count(b"{") + data.count(b"[") > _MOST_PARTS and not failed:
        raise BadResponse(f"the response has more than {_MOST_PARTS:,} objects and lists")
    await response.stream.aclose()
    response.stream = type(response)(200, content=bytes(data[:most])).stream


@functools.lru_cache(maxsize=1)
def _loop(pid: int) -> asyncio.AbstractEventLoop:
    """A process's event loop, in a thread of its own: clients keep their connections between batches."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="ragauge-llm", daemon=True).start()
    return loop


def run_batch(work: Coroutine[Any, Any, T]) -> T:
    """The result of the coroutine, run on the process's one loop (a fork has its own); an interrupt cancels it."""
    future = asyncio.run_coroutine_threadsafe(work, _loop(os.getpid()))
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
