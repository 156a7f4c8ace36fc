"""aiohttp as the transport of plain HTTP under clients of httpx, for a fraction of the time that httpx's own takes.

A server of one's own may answer some hundred requests a second; httpx's own transport takes longer for one than that
leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Self

import aiohttp
from yarl import URL

_CLOSING = 1.0  # seconds that closing the connections may take when the process ends
_OURS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")  # the request has them, or goes without


class Wire:
    """A transport of httpx or httpx2, the `library`, which keeps connections for later requests.

    It raises the library's errors.
    """

    def __init__(self, library: ModuleType) -> None:
        self._library = library
        self._session: aiohttp.ClientSession | None = None
        self._body = type("_Body", (_Body, library.AsyncByteStream), {})

    async def handle_async_request(self, request: Any) -> Any:
        """The response to a request, its body unread."""
        if self._session is None:  # it belongs to the loop that runs now
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
            )
            weakref.finalize(self, _close, self._session, asyncio.get_running_loop(), os.getpid())
        seconds = request.extensions.get("timeout") or {}
        has_body = "content-length" in request.headers or "transfer-encoding" in request.headers
        with self.named_errors():
            answer = await self._session.request(
                request.method,
                URL(str(request.url), encoded=True).with_user(None),  # httpx made a header of it
                headers=[(name.decode("ascii"), value.decode("latin-1")) for name, value in request.headers.raw],
                data=request.stream if has_body else None,
                skip_auto_headers=_OURS,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(None, sock_connect=seconds.get("connect"), sock_read=seconds.get("read")),
            )
        return self._library.Response(answer.status, headers=answer.raw_headers, stream=self._body(self, answer))

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Gives the library's names to aiohttp's errors."""
        try:
            yield
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            late = isinstance(error, TimeoutError)
            raise (self._library.ConnectTimeout if late else self._library.ConnectError)(str(error)) from error
        except TimeoutError as error:
            raise self._library.ReadTimeout(str(error)) from error
        except aiohttp.ClientOSError as error:
            raise self._library.ReadError(str(error)) from error
        except aiohttp.ClientError as error:
            raise self._library.RemoteProtocolError(
                f"the server's answer is no HTTP, or ended early: {error}"
            ) from error

    async def aclose(self) -> None:
        """Closes the connections that are kept."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Body:
    """A response's body; one that was not read to its end closes the connection."""

    def __init__(self, wire: Wire, answer: aiohttp.ClientResponse) -> None:
        self._wire, self._answer = wire, answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._wire.named_errors():
            async for piece in self._answer.content.iter_any():
                yield piece

    async def aclose(self) -> None:
        self._answer.close()


def _close(session: aiohttp.ClientSession, loop: asyncio.AbstractEventLoop, pid: int) -> None:
    """Closes a session that nobody closed, in its loop: when its transport goes, or the process that made it ends."""
    if session.closed or loop.is_closed() or os.getpid() != pid:
        return
    closing = asyncio.run_coroutine_threadsafe(session.close(), loop)
    if asyncio._get_running_loop() is None:
        with contextlib.suppress(TimeoutError):
            closing.result(_CLOSING)
