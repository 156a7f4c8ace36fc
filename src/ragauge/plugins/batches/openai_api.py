"""OpenAI's files and batches, of the model that a LangChain ChatOpenAI is: upload, create, look, list, download.

Bodies of requests and messages of replies are LangChain's own, so that a call in a batch is the same call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.redact import redact
from ragauge.llms.clients import LONGEST
from ragauge.llms.replies import read_message, status_of, was_not_sent
from ragauge.llms.settings import api_key, build_chat_model
from ragauge.plugins.batches.api import PASSING, SKEW, Attempts, Line, State, Unsure, in_parts, shown, told

if TYPE_CHECKING:
    from ragauge.llms.settings import ChatSettings

ENDPOINT = "/v1/chat/completions"
_OPEN = frozenset({"validating", "in_progress", "finalizing", "cancelling"})
_MARK = "ragauge"  # the key of our name of a batch in its metadata
_NOT_OF_BODY = ("stream", "stream_options", "timeout", "extra_headers", "extra_query")


class OpenAIBatches:
    """A `BatchApi`. A batch keeps our name in its metadata, and a request has its key as its name."""

    most_requests, most_bytes = 50_000, 190_000_000  # OpenAI takes 200 MB

    def __init__(self, llm: ChatSettings, what: str) -> None:
        self._llm, self._what, self._attempts = llm, what, Attempts(llm, what)
        self._model = build_chat_model(llm.chat, api_key(llm))
        self._client = self._model.root_client.with_options(timeout=llm.timeout, max_retries=0)
        self._client._client.follow_redirects = False  # key and prompts are for this address
        self.place = redact(str(self._client.base_url)).rstrip("/")

    def custom_id(self, batch: str, key: str) -> str:
        """The key."""
        return key

    def line(self, custom_id: str, prompt: str, options: Mapping[str, Any]) -> bytes:
        """The request as a line of a batch's file. ConfigError for a model that does not use chat completions."""
        body = self._model._get_request_payload([("human", prompt)], **options)
        if "messages" not in body:
            raise ConfigError(f"submit=batch: {self._llm.place} does not use chat completions, which batches are of")
        body = {name: value for name, value in body.items() if name not in _NOT_OF_BODY}
        body |= body.pop("extra_body", None) or {}
        request = {"custom_id": custom_id, "method": "POST", "url": ENDPOINT, "body": body}
        return json.dumps(request, ensure_ascii=False).encode() + b"\n"

    def upload(self, name: str, lines: Sequence[bytes]) -> str:
        """The id of the uploaded file; a file that no batch uses costs nothing, so it is tried again."""
        file = (f"ragauge-{name}.jsonl", b"".join(lines), "application/jsonl")
        return str(self._attempts.tried(lambda: self._client.files.create(file=file, purpose="batch").id))

    def create(self, uploaded: str, name: str) -> str:
        """The id of the new batch of an uploaded file."""
        for attempt in range(self._llm.retries + 1):
            try:
                made = self._client.batches.create(
                    input_file_id=uploaded, endpoint=ENDPOINT, completion_window="24h", metadata={_MARK: name}
                )
                return str(made.id)
            except Exception as error:
                status = status_of(error)
                if not was_not_sent(error) and (status is None or status >= 500 or status in (408, 409)):
                    raise Unsure(shown(error)) from None
                self._attempts.pause_or_raise(error, attempt)
        raise AssertionError  # the last attempt raises

    def look(self, remote: str) -> State:
        """The state of a batch at the provider."""
        return _state(self._attempts.tried(lambda: self._client.batches.retrieve(remote)))

    def find(self, name: str, since: float, n_requests: int, known: Collection[str]) -> str | None:
        """The id of the batch that has our name in its metadata."""

        def search() -> str | None:
            for one in self._client.batches.list(limit=100):
                if (one.metadata or {}).get(_MARK) == name:
                    return str(one.id)
                if one.created_at < since - SKEW:
                    break
            return None

        return self._attempts.tried(search)

    def downloaded(self, file: str, use: Callable[[list[Line]], None], at_once: int) -> None:
        """Gives the lines of an output or error file to `use`."""
        self._attempts.tried(lambda: in_parts(self._lines(file), use, at_once))

    def _lines(self, file: str) -> Iterator[Line]:
        """The lines of a batch's output or error file; those that are no JSON or name no request are left out."""
        rest = b""
        with self._client.files.with_streaming_response.content(file) as response:
            for piece in response.iter_bytes():
                *whole, rest = (rest + piece).split(b"\n")
                yield from filter(None, map(self._read, whole))
                if len(rest) > LONGEST:
                    raise MissingError(f"{self._what}: a line of file {file} is longer than {LONGEST >> 20} MiB")
        yield from filter(None, [self._read(rest)])

    def _read(self, data: bytes) -> Line | None:
        try:
            about = json.loads(data)
            key = about["custom_id"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        if not isinstance(key, str):
            return None
        answer, failed = about.get("response"), about.get("error")
        if not isinstance(answer, dict):
            return Line(key, error=told(failed))
        status = answer.get("status_code")
        if status != 200:
            body = answer.get("body")
            why = told(body.get("error") if isinstance(body, dict) else body)
            again = not isinstance(status, int) or status >= 500 or status in PASSING
            return Line(key, error=f"status {status}: {why}", again=again)
        try:
            found = self._model._create_chat_result(answer["body"]).generations[0]
            message = found.message
            message.response_metadata = {**(found.generation_info or {}), **message.response_metadata}
            return Line(key, read_message(message, self._llm.chat["_target_"]))
        except Exception as error:  # whatever LangChain makes of a body in another form
            return Line(key, error=redact(f"{type(error).__name__}: {error}")[:500], charged=True)


def _state(batch: Any) -> State:
    counts = batch.request_counts
    files = tuple(file for file in (batch.output_file_id, batch.error_file_id) if file)
    errors = "; ".join(told(one.to_dict()) for one in (batch.errors.data or ())[:3]) if batch.errors else ""
    completed, total = (counts.completed + counts.failed, counts.total) if counts else (0, 0)
    return State(batch.id, batch.status, batch.status in _OPEN, completed, total, files, errors)
