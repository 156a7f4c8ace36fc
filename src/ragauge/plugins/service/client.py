"""Sends requests to a running RAG system by HTTP, and reads its responses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ragauge.contract.redact import redact, redacted_beginning
from ragauge.llms.clients import hooks
from ragauge.llms.replies import Received
from ragauge.plugins.service.response import read_response

_SHOWN = 200  # characters of a refusal that are told


class Refused(Exception):
    """A response with an error status; `response` has the status and the headers."""

    def __init__(self, why: str, response: Any) -> None:
        super().__init__(why)
        self.response = response


class ServiceClient:
    """A service at an address, as `ragauge.llms.calls` asks chat models: `ainvoke` takes the request's JSON.

    url, method, headers: where and how it is asked.   response: the paths of `read_response`.
    api_key: sent as a bearer token, unless the headers authorize.
    """

    def __init__(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        response: Mapping[str, str | None],
        api_key: str | None = None,
    ) -> None:
        self._url, self._method, self._paths = url, method, dict(response)
        self._headers = dict(headers)
        if api_key is not None and "authorization" not in {name.lower() for name in headers}:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._client: Any = None

    async def ainvoke(self, messages: Sequence[tuple[str, str]]) -> Received:
        """The service's answer to the request in the last message.

        Raises Refused, BadResponse, and what httpx raises for a connection that fails. How long it may take
        is the caller's to say.
        """
        import httpx

        if self._client is None:  # belongs to the event loop that it is first used on
            self._client = httpx.AsyncClient(timeout=None, event_hooks=hooks())
        content = messages[-1][1]
        if self._method == "GET":
            sent: dict[str, Any] = {"params": _as_query(json.loads(content))}
        else:
            sent = {"content": content.encode()}
        headers = {"Accept": "application/json", "Content-Type": "application/json", **self._headers}
        answer = await self._client.request(self._method, self._url, headers=headers, **sent)
        if not answer.is_success:
            raise Refused(_refusal(answer), answer)
        return read_response(self._paths, answer.content, _content_type(answer))


def _refusal(answer: Any) -> str:
    """Status and beginning of an error response, on one line."""
    text = " ".join(answer.content.decode("utf-8", "replace").split())
    status = f"{answer.status_code} {answer.reason_phrase}".strip()
    return f"{status}: {redacted_beginning(text, _SHOWN)}" if text else status


def _content_type(answer: Any) -> str:
    return redact(str(answer.headers.get("content-type", "")).partition(";")[0].strip())[:60]


def _as_query(request: Mapping[str, Any]) -> dict[str, Any]:
    """A query string's values: true and false in JSON's spelling."""
    return {
        name: json.dumps(value) if isinstance(value, bool) else value
        for name, value in request.items()
        if value is not None
    }
