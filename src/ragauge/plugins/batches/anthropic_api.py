"""Anthropic's message batches, of the model that a LangChain ChatAnthropic is: create, look, list, results.

Their batches keep no name of ours, but their requests do: half of a `custom_id` is the request's key in the ledger,
half our name of the batch. It can be read once a batch has ended. So a batch whose creation got no answer is looked for
among those created since, with as many requests. One that has not ended may be it, and is waited for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.redact import redact
from ragauge.llms.clients import LONGEST
from ragauge.llms.replies import read_message, status_of, was_not_sent
from ragauge.llms.settings import api_key, build_chat_model
from ragauge.plugins.batches.api import SKEW, Attempts, Line, State, Undecided, Unsure, in_parts, shown, told

if TYPE_CHECKING:
    from ragauge.llms.settings import ChatSettings

_PATH, _VERSION = "v1/messages/batches", "2023-06-01"
_HALF = 31  # characters of the key in a custom_id, which has 64 at most: 124 bits tell requests apart
# Errors of a request with which another attempt would end, too.
_FOR_GOOD = frozenset({"invalid_request_error", "not_found_error", "permission_error", "request_too_large"})
_NOT_OF_BODY = ("stream", "timeout", "extra_headers", "extra_query")


class AnthropicBatches:
    """A `BatchApi`. Requests go in the body of the creation, so that there is nothing to upload."""

    most_requests, most_bytes = 100_000, 240_000_000  # Anthropic takes 256 MB

    def __init__(self, llm: ChatSettings, what: str) -> None:
        import httpx

        self._llm, self._what, self._attempts = llm, what, Attempts(llm, what)
        self._model = build_chat_model(llm.chat, api_key(llm))
        address = str(self._model.anthropic_api_url).rstrip("/")
        key = self._model.anthropic_api_key.get_secret_value()
        headers = {"x-api-key": key, "anthropic-version": _VERSION, **(self._model.default_headers or {})}
        self._client = httpx.Client(base_url=f"{address}/", headers=headers, timeout=llm.timeout)
        self.place = redact(address)

    def custom_id(self, batch: str, key: str) -> str:
        """Half of the key, and our name of the batch."""
        return f"{key[:_HALF]}-{batch}"

    def line(self, custom_id: str, prompt: str, options: Mapping[str, Any]) -> bytes:
        """The request as an element of a batch's `requests`."""
        body = self._model._get_request_payload([("human", prompt)], **options)
        if body.get("betas"):
            raise ConfigError(f"submit=batch: chat.betas of {self._llm.place} are not for batches; leave them out")
        body = {name: value for name, value in body.items() if name not in _NOT_OF_BODY}
        body |= body.pop("extra_body", None) or {}
        return json.dumps({"custom_id": custom_id, "params": body}, ensure_ascii=False).encode()

    def upload(self, name: str, lines: Sequence[bytes]) -> bytes:
        """The body of the creation; nothing is sent."""
        return b'{"requests": [' + b",".join(lines) + b"]}"

    def create(self, uploaded: bytes, name: str) -> str:
        """The id of the new batch."""
        for attempt in range(self._llm.retries + 1):
            try:
                headers = {"content-type": "application/json"}
                return str(self._json("POST", _PATH, content=uploaded, headers=headers)["id"])
            except Exception as error:
                status = status_of(error)
                # 529 says that the API is overloaded, and 413 that the batch is too large: nothing was made.
                if not was_not_sent(error) and (status is None or status in (408, 409) or 500 <= status != 529):
                    raise Unsure(shown(error)) from None
                self._attempts.pause_or_raise(error, attempt)
        raise AssertionError  # the last attempt raises

    def look(self, remote: str) -> State:
        """The state of a batch at the provider."""
        return _state(self._attempts.tried(lambda: self._json("GET", f"{_PATH}/{remote}")))

    def find(self, name: str, since: float, n_requests: int, known: Collection[str]) -> str | None:
        """The id of the batch whose requests have our name. Undecided while a batch of that size has not ended."""

        def search() -> str | None:
            waiting = []
            for one in self._listed():
                if datetime.fromisoformat(one["created_at"]).timestamp() < since - SKEW:
                    break
                state = _state(one)
                if state.remote in known or state.total != n_requests:
                    continue
                if state.open:
                    waiting.append(state.remote)
                elif any(line.custom_id.endswith(f"-{name}") for file in state.files for line in self._lines(file, 1)):
                    return state.remote
            if waiting:
                raise Undecided(", ".join(waiting))
            return None

        return self._attempts.tried(search)

    def downloaded(self, file: str, use: Callable[[list[Line]], None], at_once: int) -> None:
        """Gives the results of a batch to `use`."""
        self._attempts.tried(lambda: in_parts(self._lines(file), use, at_once))

    def _listed(self) -> Iterator[dict[str, Any]]:
        """The batches of the workspace, the newest first."""
        after: dict[str, Any] = {}
        while True:
            page = self._json("GET", _PATH, params={"limit": 100, **after})
            yield from page["data"]
            if not page["has_more"]:
                return
            after = {"after_id": page["last_id"]}

    def _lines(self, remote: str, most: int | None = None) -> Iterator[Line]:
        """The first lines of a batch's results; those that are no JSON or name no request are left out."""
        rest, n = b"", 0
        with self._client.stream("GET", f"{_PATH}/{remote}/results") as response:
            if not response.is_success:
                response.read()
                response.raise_for_status()
            for piece in response.iter_bytes():
                *whole, rest = (rest + piece).split(b"\n")
                for line in filter(None, map(self._read, whole)):
                    yield line
                    n += 1
                    if n == most:
                        return
                if len(rest) > LONGEST:
                    raise MissingError(f"{self._what}: a line of batch {remote} is longer than {LONGEST >> 20} MiB")
        yield from filter(None, [self._read(rest)])

    def _read(self, data: bytes) -> Line | None:
        try:
            about = json.loads(data)
            name, result = about["custom_id"], about["result"]
            kind = result["type"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        if not isinstance(name, str):
            return None
        if kind == "errored":  # an error of the API within an object of its own
            error = result.get("error") or {}
            error = error.get("error") or error
            return Line(name, error=told(error), again=error.get("type") not in _FOR_GOOD)
        if kind != "succeeded":
            return Line(name, error=f"the request is {kind}")
        try:
            return Line(name, read_message(_as_message(result["message"]), self._llm.chat["_target_"]))
        except Exception as error:  # whatever is made of a message in another form
            return Line(name, error=redact(f"{type(error).__name__}: {error}")[:500], charged=True)

    def _json(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        import httpx

        answer = self._client.request(method, path, **more)
        if not answer.is_success:
            raise httpx.HTTPStatusError(
                f"status {answer.status_code}: {told(answer.text)}", request=answer.request, response=answer
            )
        try:
            found: dict[str, Any] = answer.json()
        except ValueError as error:
            raise httpx.DecodingError(f"no JSON: {error}", request=answer.request) from None
        return found


def _as_message(body: Mapping[str, Any]) -> Any:
    """The message as LangChain makes it of a reply."""
    from langchain_core.messages import AIMessage

    usage = body.get("usage") or {}
    counts = [usage.get(f"{name}_tokens") for name in ("cache_creation_input", "cache_read_input")]
    said = {
        "prompt_tokens": usage.get("input_tokens") and usage["input_tokens"] + sum(count or 0 for count in counts),
        "completion_tokens": usage.get("output_tokens"),
    }
    return AIMessage(
        content=list(body["content"]),
        response_metadata={"stop_reason": body.get("stop_reason"), "token_usage": said},
    )


def _state(batch: Mapping[str, Any]) -> State:
    counts = {name: int(n) for name, n in batch["request_counts"].items()}
    total, remote, status = sum(counts.values()), str(batch["id"]), str(batch["processing_status"])
    if status != "ended":
        return State(remote, status, True, total - counts.get("processing", 0), total, ())
    status = "cancelled" if counts.get("canceled") else "expired" if counts.get("expired") else "completed"
    return State(remote, status, False, total, total, (remote,))
