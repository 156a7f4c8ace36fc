"""The interface of a provider's batches, and attempts at requests to it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.redact import redact
from ragauge.llms.replies import Received, retry_after, status_of

if TYPE_CHECKING:
    from ragauge.llms.settings import ChatSettings

T = TypeVar("T")

SKEW = 86_400.0  # seconds that the provider's clock may differ from ours
PASSING = frozenset({408, 409, 425, 429})
_CLIENTS = ("openai", "httpx", "httpcore")  # whose errors are the server's, or the connection's


class Unsure(Exception):
    """The creation of a batch got no answer: it may have been made."""


class Undecided(Exception):
    """A batch of the list that has not ended may be the one that is looked for."""


@dataclass(frozen=True)
class State:
    """The state of a batch at the provider; `completed` and `total` count its requests.

    open: whether it has not ended.   status: completed, failed, cancelled or expired at its end, else the provider's
    word.   files: where its replies are, which `BatchApi.downloaded` takes.
    """

    remote: str
    status: str
    open: bool
    completed: int
    total: int
    files: tuple[str, ...]
    errors: str = ""


@dataclass(frozen=True)
class Line:
    """A line of a batch's replies: the reply to a request, or why there is none.

    custom_id: the request's own name in the batch.   again: whether another attempt may succeed.   charged: whether it
    cost something without a reply, or may have.
    """

    custom_id: str
    received: Received | None = None
    error: str = ""
    again: bool = True
    charged: bool = False


class BatchApi(Protocol):
    """The batches of a model's provider. Errors are a RagaugeError that names the model and its address.

    place: the address.   most_requests, most_bytes: the limits of one batch.
    """

    place: str
    most_requests: int
    most_bytes: int

    def custom_id(self, batch: str, key: str) -> str:
        """The name of the request with this key of the ledger in the batch of this name of ours."""

    def line(self, custom_id: str, prompt: str, options: Mapping[str, Any]) -> bytes:
        """The request as it stands in a batch. ConfigError for a model that batches do not serve."""

    def upload(self, name: str, lines: Sequence[bytes]) -> Any:
        """Brings the requests to the provider, where that is a step of its own; it starts nothing."""

    def create(self, uploaded: Any, name: str) -> str:
        """The provider's id of the new batch. Unsure where it may have been made; RagaugeError where it was not."""

    def look(self, remote: str) -> State:
        """The state of a batch at the provider."""

    def find(self, name: str, since: float, n_requests: int, known: Collection[str]) -> str | None:
        """The provider's id of the batch of our name that was created after a time, None where it lists none.

        known: ids of batches of other names.   Raises Undecided where that shows only later.
        """

    def downloaded(self, file: str, use: Callable[[list[Line]], None], at_once: int) -> None:
        """Gives the lines of a file to `use`, some at a time; where the connection breaks, all of them once more."""


class Attempts:
    """Requests to the provider that may be made twice: tried again as calls are."""

    def __init__(self, llm: ChatSettings, what: str) -> None:
        self._llm, self._what = llm, what

    def tried(self, work: Callable[[], T]) -> T:
        """The result of the work."""
        for attempt in range(self._llm.retries + 1):
            try:
                return work()
            except Exception as error:
                self.pause_or_raise(error, attempt)
        raise AssertionError  # the last attempt raises

    def pause_or_raise(self, error: Exception, attempt: int) -> None:
        """Waits before another attempt; raises where none is left, or none can succeed."""
        if not type(error).__module__.startswith(_CLIENTS) and not isinstance(error, OSError):
            raise error
        status, llm = status_of(error), self._llm
        told = f"{self._what}: {llm.place}"
        if status == 404:
            raise ConfigError(
                f"{told} answers 404: it has no batches API, or does not know the batch, which "
                f"`ragauge batches forget` forgets: {shown(error)}"
            ) from None
        passing = status is None or status >= 500 or status in PASSING
        if not passing or (status == 429 and "insufficient_quota" in str(error)):
            raise ConfigError(f"{told} refuses with {status}: {shown(error)}") from None
        wait = retry_after(error)
        if attempt == llm.retries or wait > llm.max_wait:
            raise MissingError(
                f"{told}: {attempt + 1} attempt(s), the last: {shown(error)}; nothing is lost, and the same "
                "command goes on"
            ) from None
        time.sleep(wait + random.uniform(0, min(llm.max_wait, llm.backoff * 2**attempt)))


def in_parts(lines: Any, use: Callable[[list[Line]], None], at_once: int) -> None:
    """Gives the lines to `use`, at most `at_once` at a time."""
    some: list[Line] = []
    for line in lines:
        some.append(line)
        if len(some) == at_once:
            use(some)
            some = []
    use(some)


def shown(error: Exception) -> str:
    """The error with its class, without keys, of a length that a line takes."""
    return redact(f"{type(error).__name__}: {error}"[:20_000])[:500]


def told(error: Any) -> str:
    """Code or type and message of a provider's error, or whatever it is, on one line."""
    if isinstance(error, Mapping):
        error = ": ".join(str(error[name]) for name in ("code", "type", "message") if error.get(name)) or error
    return " ".join(redact(str(error)).split())[:500]
