"""Shared by all HTTP clients of a job: the event loop, guarding hooks, and time limits of answers.

No redirection is followed, no response read beyond 16 MiB. `download` reads a longer one piece by piece, up to a limit
that its caller gives. `answer` and `download` end after a time in all, however steadily bytes come.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import sys
import threading
import time
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any, TypeVar

from ragauge.contract.errors import ConfigError
from ragauge.contract.redact import redacted_beginning
from ragauge.contract.visible import visible
from ragauge.llms.wire import Wire

T = TypeVar("T")

LONGEST = 16 << 20  # bytes of a response, unpacked; thirty contexts of a page each have some 100 KB
_LONGEST_ERROR = 64 << 10  # bytes of a response with an error's status; what follows is not read
_MOST_PARTS = 250_000  # objects and lists; clients take a hundred microseconds and 2 KB for each
_SHOWN = 300  # characters of a header
_PIECE = 64 << 10  # bytes of a long body that are handed on, or unpacked, at once
_SLOWEST = 64 << 10  # bytes a second that a long body comes, or is sent, with on the average; below that it is ended
_CLOSING = 5.0  # seconds that closing a connection may take

_by_pieces: ContextVar[bool] = ContextVar("by_pieces", default=False)  # whether `download` reads the body


class BadResponse(Exception):
    """A response that is too long, has too many parts, or an unsupported encoding."""


class Redirected(BadResponse):
    """A redirect, which would send key and prompt to another address."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.status = status


Hooks = dict[str, list[Callable[[Any], Awaitable[None]]]]


def hooks() -> Hooks:
    """Event hooks for an `AsyncClient` of httpx or of httpx2, which openai uses from version 3.

    They raise Redirected and BadResponse.
    """
    return {"request": [_ask_for_plain], "response": [_read]}


def guard(model: Any) -> Any:
    """The LangChain chat model, its asynchronous client's hooks set, and the transport of plain HTTP.

    ConfigError where a client of langchain_openai or langchain_ollama keeps its HTTP client elsewhere. Those
    of other packages are guarded where they keep it in the same place.
    """
    owner = getattr(model, "root_async_client", None) or getattr(model, "_async_client", None)
    client: Any = getattr(owner, "_client", None)
    if hasattr(client, "event_hooks"):
        client.event_hooks = hooks()
        plain = str(getattr(owner, "base_url", "")).startswith("http://") and not getattr(client, "_mounts", True)
        if plain and not getattr(model, "http_socket_options", None):  # nor a proxy: that is a mount
            library = type(client).__mro__[-2].__module__.partition(".")[0]  # httpx or httpx2, whose base it has
            client._transport = Wire(sys.modules[library])
    elif type(model).__module__.startswith(("langchain_openai.", "langchain_ollama.")):
        package = type(model).__module__.partition(".")[0]
        raise ConfigError(f"chat: this version of {package} is not known: redirections could not be refused")
    return model


async def _ask_for_plain(request: Any) -> None:
    request.headers["Accept-Encoding"] = "identity"


async def _read(response: Any) -> None:
    """Replaces the body's stream by its unpacked bytes, except in `download`."""
    if 300 <= response.status_code < 400:
        location = response.headers.get("location", "an address that it does not name")
        shown = visible(redacted_beginning(location, _SHOWN), one_line=True)
        raise Redirected(f"sends to {shown} (status {response.status_code})", response.status_code)
    failed = response.status_code >= 400
    if _by_pieces.get() and not failed:
        return
    most = _LONGEST_ERROR if failed else LONGEST
    unpacked = _unpacking(response, failed)
    data, n_received = bytearray(), 0
    async for piece in response.stream:
        n_received += len(piece)
        for part in unpacked(piece):
            data += part
            if len(data) > most:
                break
        if max(n_received, len(data)) > most:
            break
    if max(n_received, len(data)) > most and not failed:
        raise BadResponse(f"the response is longer than {LONGEST >> 20} MiB")
    if has_many_parts(data) and not failed:
        raise BadResponse(f"the response has more than {_MOST_PARTS:,} objects and lists")
    await response.stream.aclose()
    response.stream = type(response)(200, content=bytes(data[:most])).stream


def has_many_parts(data: bytes | bytearray) -> bool:
    """Whether JSON has more objects and lists than a response may have."""
    return data.count(b"{") + data.count(b"[") > _MOST_PARTS


def _unpacking(response: Any, failed: bool = False) -> Callable[[bytes], Iterator[bytes]]:
    """A function that unpacks pieces of a body incrementally; BadResponse for an unsupported encoding.

    The header of the packing is removed: the client would unpack the body a second time.
    """
    packing = response.headers.pop("content-encoding", "identity").strip().lower()
    unpacker = zlib.decompressobj(wbits=31) if packing in ("gzip", "x-gzip") else None
    if unpacker is None and packing not in ("", "identity") and not failed:
        shown = visible(redacted_beginning(packing, _SHOWN), one_line=True)
        raise BadResponse(f"the response is packed as '{shown}', and was asked for as it is")

    def unpacked(piece: bytes) -> Iterator[bytes]:
        if unpacker is None:
            yield piece
            return
        try:
            while piece:
                yield unpacker.decompress(piece, _PIECE)
                piece = unpacker.unconsumed_tail
        except zlib.error as error:
            raise BadResponse(f"the response cannot be unpacked: {error}") from None

    return unpacked


def answer(work: Awaitable[T], seconds: float, n_sent: int = 0) -> T:
    """The result of a request, run on the process's loop.

    seconds: how long it may take in all, beside the time that `n_sent` bytes take at the slowest. TimeoutError where it
    takes longer.
    """

    async def whole() -> T:
        return await work

    return _within(whole(), seconds + n_sent / _SLOWEST)


def download(
    opening: Callable[[], contextlib.AbstractAsyncContextManager[Any]], seconds: float, most: int
) -> Iterator[bytes]:
    """The unpacked body of a response, in pieces as they arrive.

    opening: the response, as `stream` of a client of httpx with `hooks` gives it.   most: bytes; BadResponse for more.
    TimeoutError where more than `seconds` were waited for it, beside a second for every 64 KiB that came. Statuses are
    the caller's matter.
    """
    context, waited, n_received, n_unpacked = opening(), 0.0, 0, 0

    def wait(work: Coroutine[Any, Any, T]) -> T:
        nonlocal waited
        began = time.monotonic()
        try:
            return _within(work, max(0.0, seconds + n_received / _SLOWEST - waited))
        finally:
            waited += time.monotonic() - began

    async def opened() -> Any:
        _by_pieces.set(True)
        return await context.__aenter__()

    async def some() -> bytes:
        """The next pieces together; b"" at the end."""
        gathered = bytearray()
        async for piece in raw:
            gathered += piece
            if len(gathered) >= _PIECE:
                break
        return bytes(gathered)

    response = wait(opened())
    try:
        unpacked = _unpacking(response)
        raw = response.aiter_raw()
        while data := wait(some()):
            n_received += len(data)
            for part in unpacked(data):
                n_unpacked += len(part)
                if max(n_received, n_unpacked) > most:
                    raise BadResponse(f"the response is longer than {most >> 20} MiB")
                if part:
                    yield part
    finally:
        with contextlib.suppress(Exception):
            _within(context.__aexit__(None, None, None), _CLOSING)


def _within(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """The result of the work on the process's loop; TimeoutError with a reason if it takes longer."""

    async def limited() -> T:
        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError:
            raise TimeoutError("the whole answer did not come in the time that timeout allows") from None

    return run_batch(limited())


@functools.lru_cache(maxsize=1)
def _loop(pid: int) -> asyncio.AbstractEventLoop:
    """A process's event loop, in a thread of its own: clients keep their connections between batches."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="ragauge-llm", daemon=True).start()
    return loop


def start(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Starts the coroutine on the process's loop (a fork has its own)."""
    return asyncio.run_coroutine_threadsafe(work, _loop(os.getpid()))


def run_batch(work: Coroutine[Any, Any, T]) -> T:
    """The result of the coroutine on the process's loop; an interrupt cancels it."""
    future = start(work)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
