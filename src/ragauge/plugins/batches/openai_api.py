"""OpenAI's files and batches, for the model of a LangChain ChatOpenAI: upload, create, look, list, download.

Bodies of requests and messages of replies are LangChain's own, so that a call in a batch is the same call.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from ragauge.contract.errors import ConfigError
from ragauge.contract.redact import redact
from ragauge.llms.replies import of_completion, read_message
from ragauge.llms.settings import api_key, build_chat_model
from ragauge.plugins.batches.api import (
    PASSING,
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

ENDPOINT = "/v1/chat/completions"
_OPEN = frozenset({"validating", "in_progress", "finalizing", "cancelling"})
_ENDS = frozenset({"completed", "failed", "expired", "cancelled"})
_MARK = "ragauge"  # the key of our name of a batch in its metadata
_NOT_OF_BODY = ("stream", "stream_options", "timeout", "extra_headers", "extra_query")


class OpenAIBatches(Provider):
    """A `BatchApi`. A batch keeps our name in its metadata, and a request has its key as its name."""

    most_requests, most_bytes = 50_000, 190_000_000  # OpenAI takes 200 MB

    def __init__(self, llm: ChatSettings, what: str) -> None:
        self._model = build_chat_model(llm.chat, api_key(llm))
        client = self._model.root_async_client.with_options(timeout=llm.timeout, max_retries=0)
        super().__init__(llm, what, redact(str(client.base_url)).rstrip("/"))
        self._batches, self._files = client.batches.with_raw_response, client.files.with_raw_response
        self._content = client.files.with_streaming_response.content
        self._uploaded: dict[str, str] = {}  # file by our name of its batch

    def custom_id(self, batch: str, key: str) -> str:
        """The key."""
        return key

    def line(self, custom_id: str, prompt: str, options: Mapping[str, Any]) -> bytes:
        """The request as a line of a batch's file. ConfigError for a model without chat completions."""
        body = self._model._get_request_payload([("human", prompt)], **options)
        if "messages" not in body:
            raise ConfigError(f"submit=batch: {self.llm.place} does not use chat completions, which batches are of")
        body = {name: value for name, value in body.items() if name not in _NOT_OF_BODY}
        body |= body.pop("extra_body", None) or {}
        request = {"custom_id": custom_id, "method": "POST", "url": ENDPOINT, "body": body}
        return json.dumps(request, ensure_ascii=False).encode() + b"\n"

    def upload(self, name: str, lines: Sequence[bytes]) -> str:
        """The id of the uploaded file; retries, since an unused file costs nothing."""
        content = b"".join(lines)
        file = (f"ragauge-{name}.jsonl", content, "application/jsonl")

        def send() -> str:
            made = self.parsed(self._files.create(file=file, purpose="batch"), len(content))
            return id_of(made, "to the upload of a batch's file")

        self._uploaded[name] = self.tried(send)
        return self._uploaded[name]

    def created(self, uploaded: str, name: str) -> Any:
        """The provider's answer to one creation of a batch."""
        return self.parsed(
            self._batches.create(
                input_file_id=uploaded, endpoint=ENDPOINT, completion_window="24h", metadata={_MARK: name}
            )
        )

    def look(self, remote: str) -> State:
        """The state of a batch at the provider."""
        return self.tried(lambda: _state(self.parsed(self._batches.retrieve(remote)), remote))

    def find(self, name: str, since: float, n_requests: int, known: Collection[str]) -> str | None:
        """The id of the batch with our name in its metadata, or the file uploaded under our name."""

        def search() -> str | None:
            for one in self.listed(self._page):
                metadata, file = one.get("metadata"), one.get("input_file_id")
                named = isinstance(metadata, Mapping) and metadata.get(_MARK) == name
                if named or (file is not None and file == self._uploaded.get(name)):
                    try:
                        return id_of(one, "of the list")
                    except OddReply as error:
                        raise Undecided(str(error)) from None
                created = one.get("created_at")
                if isinstance(created, (int, float)) and created < since - SKEW:
                    break
            return None

        return self.tried(search)

    def _page(self, after: str | None) -> Any:
        return self.parsed(self._batches.list(limit=100, **({} if after is None else {"after": after})))

    @asynccontextmanager
    async def _opened(self, file: str) -> AsyncIterator[Any]:
        async with self._content(file) as response:
            yield response.http_response

    def opened(self, file: str) -> AbstractAsyncContextManager[Any]:
        """The response with an output or error file."""
        return self._opened(file)

    def of_request(self, name: str, about: Mapping[str, Any]) -> Line:
        """A request's line in an output or error file."""
        answer, failed = about.get("response"), about.get("error")
        if not isinstance(answer, Mapping):
            # Without a response and an error the line says nothing of what became of the request.
            return Line(name, error=told(failed or about), charged=not failed)
        status, body = _status(answer.get("status_code")), answer.get("body")
        if status is not None and status >= 400:
            why = told((body.get("error") or body) if isinstance(body, Mapping) else body)
            return Line(name, error=f"status {status}: {why}", again=status >= 500 or status in PASSING)
        if not isinstance(body, Mapping):
            raise OddReply(f"a reply that is none: {beginning(body)}")
        return Line(name, read_message(of_completion(body), self.llm.chat["_target_"]))


def _status(status: Any) -> int | None:
    """The status of a response; None for anything else, whose body is then read as a paid reply."""
    try:
        return int(status)
    except (TypeError, ValueError, OverflowError):
        return None


def _state(batch: Any, remote: str = "") -> State:
    if not isinstance(batch, Mapping):
        raise OddReply(f"batch {remote} has an odd state: {beginning(batch)}")
    word = word_of(batch.get("status"))
    ended = word in _ENDS
    files = [batch.get(name) for name in ("output_file_id", "error_file_id")]
    if ended and any(file and not isinstance(file, str) for file in files):
        raise OddReply(f"batch {remote} is {word}, and the ids of its files are {beginning(files)}")
    counts, errors = batch.get("request_counts"), batch.get("errors")
    counts = counts if isinstance(counts, Mapping) else {}
    data = errors.get("data") if isinstance(errors, Mapping) else None
    return State(
        remote, word, not ended, count_of(counts, "completed", "failed"), count_of(counts, "total"),
        tuple(str(file) for file in files if file and ended),
        "; ".join(told(one) for one in data[:3]) if isinstance(data, list) else told(errors) if errors else "",
        known=ended or word in _OPEN,
    )  # fmt: skip
