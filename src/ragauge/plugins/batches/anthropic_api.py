"""Anthropic's message batches, for the model of a LangChain ChatAnthropic: create, look, list, results.

Their batches keep no name of ours, but their requests do: half of a `custom_id` is the request's key in the ledger,
half our name of the batch. It can be read once a batch has ended. So a batch whose creation got no answer is looked for
among those created since, with as many requests. One that has not ended may be it, and is waited for.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ragauge.contract.errors import ConfigError
from ragauge.contract.redact import redact
from ragauge.llms.clients import hooks
from ragauge.llms.replies import read_message
from ragauge.llms.settings import api_key, build_chat_model
from ragauge.llms.usage import as_openai, of_anthropic
from ragauge.plugins.batches.api import (
    SKEW,
    Line,
    OddReply,
    Provider,
    State,
    Undecided,
    beginning,
    count_of,
    id_of,
    told,
    word_of,
)

if TYPE_CHECKING:
    from ragauge.llms.settings import ChatSettings

_PATH, _VERSION = "v1/messages/batches", "2023-06-01"
_HALF = 31  # characters of the key in a custom_id, which has 64 at most: 124 bits tell requests apart
# Errors of a request with which another attempt would end, too.
_FOR_GOOD = frozenset({"invalid_request_error", "not_found_error", "permission_error", "request_too_large"})
_OPEN = frozenset({"in_progress", "canceling"})
_NOT_CHARGED = frozenset({"canceled", "expired"})  # ends of a request that cost nothing
_NOT_OF_BODY = ("stream", "timeout", "extra_headers", "extra_query")


class AnthropicBatches(Provider):
    """A `BatchApi`. Requests go in the body of the creation, without an upload."""

    most_requests, most_bytes = 100_000, 240_000_000  # Anthropic takes 256 MB

    def __init__(self, llm: ChatSettings, what: str) -> None:
        import httpx

        self._model = build_chat_model(llm.chat, api_key(llm))
        address = str(self._model.anthropic_api_url).rstrip("/")
        super().__init__(llm, what, redact(address))
        key = self._model.anthropic_api_key.get_secret_value()
        headers = {"x-api-key": key, "anthropic-version": _VERSION, **(self._model.default_headers or {})}
        self._client = httpx.AsyncClient(
            base_url=f"{address}/", headers=headers, timeout=llm.timeout, event_hooks=hooks()
        )

    def custom_id(self, batch: str, key: str) -> str:
        """Half of the key, and our name of the batch."""
        return f"{key[:_HALF]}-{batch}"

    def line(self, custom_id: str, prompt: str, options: Mapping[str, Any]) -> bytes:
        """The request as an element of a batch's `requests`."""
        body = self._model._get_request_payload([("human", prompt)], **options)
        if body.get("betas"):
            raise ConfigError(f"submit=batch: chat.betas of {self.llm.place} are not for batches; leave them out")
        body = {name: value for name, value in body.items() if name not in _NOT_OF_BODY}
        body |= body.pop("extra_body", None) or {}
        return json.dumps({"custom_id": custom_id, "params": body}, ensure_ascii=False).encode()

    def upload(self, name: str, lines: Sequence[bytes]) -> bytes:
        """The body of the creation; nothing is sent."""
        return b'{"requests": [' + b",".join(lines) + b"]}"

    def created(self, uploaded: bytes, name: str) -> Any:
        """The provider's answer to one creation of a batch."""
        headers = {"content-type": "application/json"}
        return self.parsed(self._asked("POST", _PATH, content=uploaded, headers=headers), len(uploaded))

    def look(self, remote: str) -> State:
        """The state of a batch at the provider."""
        return self.tried(lambda: _state(self.parsed(self._asked("GET", _of(remote))), remote))

    def find(self, name: str, since: float, n_requests: int, known: Collection[str]) -> str | None:
        """The id of the batch with our name on its requests. Undecided while a batch of that size is running."""

        def search() -> str | None:
            waiting = []
            for one in self.listed(self._page):
                if _created(one) < since - SKEW:
                    break
                try:
                    remote = id_of(one, "of the list")
                    if remote in known:
                        continue
                    state = _state(one, remote)
                except OddReply as error:  # nothing says that it is another
                    waiting.append(str(error))
                    continue
                if state.total not in (0, n_requests):
                    continue
                if state.open:
                    waiting.append(remote)
                elif any(line.custom_id.endswith(f"-{name}") for line in islice(self.lines(remote, n_requests, ()), 1)):
                    return remote
            if waiting:
                raise Undecided(", ".join(waiting))
            return None

        return self.tried(search)

    def _page(self, after: str | None) -> Any:
        more = {} if after is None else {"after_id": after}
        return self.parsed(self._asked("GET", _PATH, params={"limit": 100, **more}))

    def opened(self, file: str) -> AbstractAsyncContextManager[Any]:
        """The response with the results of a batch."""
        return self._opened(f"{_of(file)}/results")

    @asynccontextmanager
    async def _opened(self, path: str) -> AsyncIterator[Any]:
        async with self._client.stream("GET", path) as response:
            yield await _successful(response)

    async def _asked(self, method: str, path: str, **more: Any) -> Any:
        return await _successful(await self._client.request(method, path, **more))

    def of_request(self, name: str, about: Mapping[str, Any]) -> Line:
        """A request's line among the results."""
        result = about["result"]
        kind = word_of(result["type"])
        if kind == "errored":  # an error of the API within an object of its own
            error = result.get("error") or {}
            error = (error.get("error") or error) if isinstance(error, Mapping) else error
            of_type = error.get("type") if isinstance(error, Mapping) else None
            return Line(name, error=told(error), again=not (isinstance(of_type, str) and of_type in _FOR_GOOD))
        if kind != "succeeded":
            return Line(name, error=f"the request is {kind}", charged=kind not in _NOT_CHARGED)
        return Line(name, read_message(_as_message(result["message"]), self.llm.chat["_target_"]))


def _of(remote: str) -> str:
    """The path of a batch."""
    return f"{_PATH}/{quote(remote, safe='')}"


async def _successful(response: Any) -> Any:
    """The response; raises for an error status."""
    import httpx

    if not response.is_success:
        text = (await response.aread()).decode("utf-8", "replace")
        why = f"status {response.status_code}: {told(text)}"
        raise httpx.HTTPStatusError(why, request=response.request, response=response)
    return response


def _as_message(body: Mapping[str, Any]) -> Any:
    """The reply as LangChain's message."""
    from langchain_core.messages import AIMessage

    return AIMessage(
        content=list(body["content"]),
        response_metadata={
            "stop_reason": body.get("stop_reason"),
            "token_usage": as_openai(of_anthropic(body.get("usage"))),
        },
    )


def _created(batch: Mapping[str, Any]) -> float:
    """When a batch was created, in seconds since 1970; inf if not given."""
    try:
        return datetime.fromisoformat(batch["created_at"]).timestamp()
    except (KeyError, TypeError, ValueError, OverflowError):
        return float("inf")


def _state(batch: Any, remote: str = "") -> State:
    if not isinstance(batch, Mapping):
        raise OddReply(f"batch {remote} has an odd state: {beginning(batch)}")
    word, counts = word_of(batch.get("processing_status")), batch.get("request_counts")
    plain = isinstance(counts, Mapping) and all(
        isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in counts.values()
    )
    if word == "ended" and not plain:  # nothing says whether all of its requests were answered
        raise OddReply(f"batch {remote} has ended, and its request_counts are {beginning(counts)}")
    known: Mapping[str, Any] = counts if plain and isinstance(counts, Mapping) else {}
    total = count_of(known, *known)
    if word != "ended":
        done = total - count_of(known, "processing")
        return State(remote, word, True, done, total, (), known=word in _OPEN)
    end = "cancelled" if known.get("canceled") else "expired" if known.get("expired") else "completed"
    return State(remote, end, False, total, total, (remote,))
