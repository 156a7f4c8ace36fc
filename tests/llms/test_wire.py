"""The transport of plain HTTP: connections that are kept, bodies in every form, and answers that are none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from ragauge.llms.settings import build_chat_model
from ragauge.llms.wire import Wire

SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nParis"
CHUNKED = (
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;name=value\r\nPar\r\n2\r\nis\r\n0\r\nTrailer: x\r\n\r\n"
)
UNTIL_CLOSED = b"HTTP/1.0 200 OK\r\n\r\nParis"


def asked(answers: list[bytes], ask: Callable[[httpx.AsyncClient, str], Any]) -> tuple[Any, int, list[bytes]]:
    """What `ask` finds at a server that gives these answers in turn; its connections, and the requests.

    An answer that tells no length is the last of its connection.
    """
    requests: list[bytes] = []
    connections = 0
    left = iter(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = httpx.Headers([line.split(b": ", 1) for line in head.split(b"\r\n")[1:-2]]).get("content-length")
            requests.append(head + await reader.readexactly(int(length or 0)))
            writer.write(answer := next(left))
            if b"Length: 5" not in answer and b"chunked" not in answer:
                break
        writer.close()

    async def both() -> Any:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1?a=b"
        async with server, httpx.AsyncClient(transport=Wire(httpx)) as client:  # type: ignore[arg-type]
            return await ask(client, address)

    return asyncio.run(both()), connections, requests


async def post_thrice(client: httpx.AsyncClient, url: str) -> list[str]:
    return [(await client.post(url, json={"n": n})).text for n in range(3)]


def test_one_connection_serves_requests_one_after_the_other_whatever_form_their_bodies_have() -> None:
    texts, connections, requests = asked([SIZED, CHUNKED, UNTIL_CLOSED], post_thrice)
    assert texts == ["Paris"] * 3
    assert connections == 1
    assert requests[2].startswith(b"POST /v1?a=b HTTP/1.1\r\nHost: 127.0.0.1:")
    assert requests[2].endswith(b'\r\n\r\n{"n":2}')


def test_a_name_and_a_password_in_the_address_are_a_header() -> None:
    async def post(client: httpx.AsyncClient, url: str) -> None:
        await client.post(url.replace("://", "://a:b@"), headers={"Authorization": "Bearer key"})

    [request] = asked([SIZED], post)[2]
    assert b"Authorization: Basic YTpi\r\n" in request
    assert b"a:b@" not in request


def test_a_connection_that_the_server_closes_is_not_used_again() -> None:
    closing = SIZED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert asked([closing, UNTIL_CLOSED, SIZED], post_thrice)[:2] == (["Paris"] * 3, 3)


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"Paris", b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nParis", SIZED[:-1].replace(b"Length: 5", b"Length: 6"),
        CHUNKED.replace(b"3;name", b"-3;name"), CHUNKED[:-20].replace(b"chunked", b"Chunked"),
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * (65 << 10),
    ],
)  # fmt: skip
def test_an_answer_that_is_no_http_or_ends_early_is_an_error(answer: bytes) -> None:
    async def post(client: httpx.AsyncClient, url: str) -> Any:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(url, timeout=20)

    asked([answer], post)


def test_time_outs_and_refused_connections_are_those_of_httpx() -> None:
    async def post(client: httpx.AsyncClient, url: str) -> None:
        with pytest.raises(httpx.ReadTimeout):
            await client.post(url, timeout=0.3)
        with pytest.raises(httpx.ConnectError):
            await client.post("http://127.0.0.1:1/")

    asked([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nPa"], post)


def test_https_and_proxies_keep_the_clients_own_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    def transport(address: str) -> object:
        chat = {"_target_": "langchain_openai.ChatOpenAI", "model": address, "base_url": f"{address}/v1"}
        return build_chat_model(chat, "key").root_async_client._client._transport

    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert isinstance(transport("http://here"), Wire)
    assert not isinstance(transport("https://there"), Wire)
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    assert not isinstance(transport("http://elsewhere"), Wire)
