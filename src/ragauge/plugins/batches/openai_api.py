"""OpenAI's files and batches, of the model that a LangChain ChatOpenAI is: upload, create, look, list, download.

Bodies of requests and messages of replies are LangChain's own, so that a call in a batch is the same call.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.redact import redact
from ragauge.llms.clients import LONGEST
from ragauge.llms.replies import Received, read_message, retry_after, status_of, was_not_sent
from ragauge.llms.settings import api_key, build_chat_model

if TYPE_CHECKING:
    from ragauge.llms.settings import ChatSettings

T = TypeVar("T")

ENDPOINT = "/v1/chat/completions"
# Statuses of a batch that is not at its end.
OPEN = frozenset({"validating", "in_progress", "finalizing", "cancelling"})
_MARK = "ragauge"  # the key of our name of a batch in its metadata
_SKEW = 86_400.0  # seconds that the provider's clock may differ from ours
_PASSING = frozenset({408, 409, 425, 429})
_NOT_OF_BODY = ("stream", "stream_options", "timeout", "extra_headers", "extra_query")


class Unsure(Exception):
    """The creation of a batch got no answer: it may have been made."""


@dataclass(frozen=True)
class State:
    """What the provider says of a batch; `completed` and `total` count its requests."""

    remote: str
    status: str
    completed: int
    total: int
    files: tuple[str, ...]
    errors: str


@dataclass(frozen=True)
class Line:
    """A line of a batch's files: the reply to a request, or why there is none.

    again: whether another attempt may succeed.   charged: whether it cost something without a reply, or may have.
    """

    key: str
    received: Received | None = None
    error: str = ""
    again: bool = True
    charged: bool = False


class Api:
    """The batches of a model's provider; errors name the model and its address."""

    def __init__(self, llm: ChatSettings, what: str) -> None:
        self._llm, self._what = llm, what
        self._model = build_chat_model(llm.chat, api_key(llm))
        self._client = self._model.root_client.with_options(timeout=llm.timeout, max_retries=0)
        self._client._client.follow_redirects = False  # key and prompts are for this address
        self.place = redact(str(self._client.base_url)).rstrip("/")

    def line(self, key: str, prompt: str, options: Mapping[str, Any]) -> bytes:
        """The request as a line of a batch's file. ConfigError for a model that does not use chat completions."""
        body = self._model._get_request_payload([("human", prompt)], **options)
        if "messages" not in body:
            raise ConfigError(f"submit=batch: {self._llm.place} does not use chat completions, which batches are of")
        body = {name: value for name, value in body.items() if name not in _NOT_OF_BODY}
        body |= body.pop("extra_body", None) or {}
        request = {"custom_id": key, "method": "POST", "url": ENDPOINT, "body": body}
        return json.dumps(request, ensure_ascii=False).encode() + b"\n"

    def upload(self, name: str, content: bytes) -> str:
        """The id of the uploaded file; a file that no batch uses costs nothing, so it is tried again."""
        file = (f"ragauge-{name}.jsonl", content, "application/jsonl")
        return str(self._tried(lambda: self._client.files.create(file=file, purpose="batch").id))

    def create(self, file: str, name: str) -> str:
        """The id of the new batch. Unsure where it may have been made; RagaugeError where it was not."""
        for attempt in range(self._llm.retries + 1):
            try:
                made = self._client.batches.create(
                    input_file_id=file, endpoint=ENDPOINT, completion_window="24h", metadata={_MARK: name}
                )
                return str(made.id)
            except Exception as error:
                status = status_of(error)
                if not was_not_sent(error) and (status is None or status >= 500 or status in (408, 409)):
                    raise Unsure(self._shown(error)) from None
                self._pause_or_raise(error, attempt)
        raise AssertionError  # the last attempt raises

    def look(self, remote: str) -> State:
        """What the provider says of a batch."""
        return self._state(self._tried(lambda: self._client.batches.retrieve(remote)))

    def find(self, name: str, since: float) -> str | None:
        """The provider's id of the batch of our name that was created after a time, None where it lists none."""

        def search() -> str | None:
            for one in self._client.batches.list(limit=100):
                if (one.metadata or {}).get(_MARK) == name:
                    return str(one.id)
                if one.created_at < since - _SKEW:
                    break
            return None

        return self._tried(search)

    def lines(self, file: str) -> Iterator[Line]:
        """The lines of a batch's output or error file; those that are no JSON or name no request are left out."""
        rest = b""
        with self._client.files.with_streaming_response.content(file) as response:
            for piece in response.iter_bytes():
                *whole, rest = (rest + piece).split(b"\n")
                yield from filter(None, map(self._read, whole))
                if len(rest) > LONGEST:
                    raise MissingError(f"{self._what}: a line of file {file} is longer than {LONGEST >> 20} MiB")
        yield from filter(None, [self._read(rest)])

    def downloaded(self, file: str, use: Callable[[list[Line]], None], at_once: int) -> None:
        """Gives the lines of a file to `use`, some at a time; where the connection breaks, all of them once more."""

        def work() -> None:
            some: list[Line] = []
            for line in self.lines(file):
                some.append(line)
                if len(some) == at_once:
                    use(some)
                    some = []
            use(some)

        self._tried(work)

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
            return Line(key, error=_told(failed))
        status = answer.get("status_code")
        if status != 200:
            body = answer.get("body")
            why = _told(body.get("error") if isinstance(body, dict) else body)
            again = not isinstance(status, int) or status >= 500 or status in _PASSING
            return Line(key, error=f"status {status}: {why}", again=again)
        try:
            found = self._model._create_chat_result(answer["body"]).generations[0]
            message = found.message
            message.response_metadata = {**(found.generation_info or {}), **message.response_metadata}
            return Line(key, read_message(message, self._llm.chat["_target_"]))
        except Exception as error:  # whatever LangChain makes of a body in another form
            return Line(key, error=redact(f"{type(error).__name__}: {error}")[:500], charged=True)

    def _state(self, batch: Any) -> State:
        counts = batch.request_counts
        files = tuple(file for file in (batch.output_file_id, batch.error_file_id) if file)
        told = "; ".join(_told(one.to_dict()) for one in (batch.errors.data or ())[:3]) if batch.errors else ""
        completed, total = (counts.completed + counts.failed, counts.total) if counts else (0, 0)
        return State(batch.id, batch.status, completed, total, files, told)

    def _tried(self, work: Callable[[], T]) -> T:
        """The result of work that may be done twice; tried again as calls are."""
        for attempt in range(self._llm.retries + 1):
            try:
                return work()
            except Exception as error:
                self._pause_or_raise(error, attempt)
        raise AssertionError  # the last attempt raises

    def _pause_or_raise(self, error: Exception, attempt: int) -> None:
        """Waits before another attempt; raises where none is left, or none can succeed."""
        if not type(error).__module__.startswith(("openai", "httpx", "httpcore")) and not isinstance(error, OSError):
            raise error
        status, llm = status_of(error), self._llm
        told = f"{self._what}: {llm.place}"
        if status == 404:
            raise ConfigError(
                f"{told} answers 404: it has no files and batches API, or does not know the batch, which "
                f"`ragauge batches forget` forgets: {self._shown(error)}"
            ) from None
        passing = status is None or status >= 500 or status in _PASSING
        if not passing or (status == 429 and "insufficient_quota" in str(error)):
            raise ConfigError(f"{told} refuses with {status}: {self._shown(error)}") from None
        wait = retry_after(error)
        if attempt == llm.retries or wait > llm.max_wait:
            raise MissingError(
                f"{told}: {attempt + 1} attempt(s), the last: {self._shown(error)}; nothing is lost, and the same "
                "command goes on"
            ) from None
        time.sleep(wait + random.uniform(0, min(llm.max_wait, llm.backoff * 2**attempt)))

    @staticmethod
    def _shown(error: Exception) -> str:
        return redact(f"{type(error).__name__}: {error}"[:20_000])[:500]


def _told(error: Any) -> str:
    """Code and message of a provider's error, or whatever it is, on one line."""
    if isinstance(error, Mapping):
        error = ": ".join(str(error[name]) for name in ("code", "message") if error.get(name)) or error
    return " ".join(redact(str(error)).split())[:500]
