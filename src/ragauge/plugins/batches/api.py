"""The interface of a provider's batches, and its shared parts: attempts, limits, malformed replies.

Every request is made by `ragauge.llms.clients`, which limits how long an answer may be and how long it may take.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ragauge.contract.errors import ConfigError, MissingError, causes
from ragauge.contract.redact import redact, redacted_beginning
from ragauge.contract.visible import visible
from ragauge.llms.clients import LONGEST, BadResponse, Redirected, answer, download, has_many_parts
from ragauge.llms.failures import has_no_money_left, retry_after, status_of, was_not_sent
from ragauge.llms.replies import Received

if TYPE_CHECKING:
    from ragauge.llms.settings import ChatSettings

T = TypeVar("T")

log = logging.getLogger(__name__)

SKEW = 86_400.0  # seconds that the provider's clock may differ from ours
PASSING = frozenset({408, 409, 425, 429})
_CLIENTS = ("openai", "httpx", "httpcore")  # whose errors are the server's, or the connection's
_MOST_PAGES = 1_000  # of a list of batches; a page has a hundred
_SEARCH = 10  # times `timeout`: how long reading a list of batches may take
_BYTES_OF_REPLY = 64 << 10  # of a line of replies, beside what its tokens take
_BYTES_OF_TOKEN = 1 << 10  # of a token of a reply, with probabilities of others beside it
_LONGEST_ID = 300  # characters
_SHOWN = 100  # characters of an odd reply
_LONGEST_ERROR = 20_000  # characters that are searched for keys; 500 of them are shown


class Unsure(Exception):
    """The reply to a batch's creation does not name it: the batch may exist."""


class Undecided(Exception):
    """A listed batch that has not ended, or has no id, may be the wanted one."""


class OddReply(Exception):
    """A provider's reply in another form than its API documents; the request may be repeated."""


@dataclass(frozen=True)
class State:
    """The state of a batch at the provider; `completed` and `total` count its requests, 0 if not given.

    open: whether it has not ended.   status: completed, failed, cancelled or expired at its end, else the provider's
    word.   files: where its replies are, which `BatchApi.downloaded` takes.   known: False for a word that the API does
    not document; such a batch is open.
    """

    remote: str
    status: str
    open: bool
    completed: int
    total: int
    files: tuple[str, ...]
    errors: str = ""
    known: bool = True


@dataclass(frozen=True)
class Line:
    """A line of a batch's replies: the reply to a request, or why there is none.

    custom_id: the request's own name in the batch; "" where the line has none.   again: whether another attempt may
    succeed.   charged: whether it cost something without a reply, or may have.
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
        """The name in our batch for the request with this ledger key."""

    def line(self, custom_id: str, prompt: str, options: Mapping[str, Any]) -> bytes:
        """The request as a line of a batch. ConfigError for a model without batches."""

    def upload(self, name: str, lines: Sequence[bytes]) -> Any:
        """Uploads the requests, if the provider needs a separate step; it starts nothing."""

    def create(self, uploaded: Any, name: str) -> str:
        """Creates a batch; returns the provider's id. Unsure if it may exist; RagaugeError if it does not."""

    def look(self, remote: str) -> State:
        """The state of a batch at the provider."""

    def find(self, name: str, since: float, n_requests: int, known: Collection[str]) -> str | None:
        """The provider's id of the batch of our name created after a time, None if not listed.

        known: ids of batches of other names.   Raises Undecided where that shows only later.
        """

    def downloaded(
        self, file: str, n_requests: int, names: Collection[str], read: Callable[[Iterator[Line]], None]
    ) -> None:
        """Passes the lines of a file to `read`; again from the start if the connection breaks.

        n_requests: the number of requests in the batch, 0 if it is not known.   names: custom ids of the requests whose
        lines are read; of another line the custom id alone is.
        """


class Provider:
    """The base of both `BatchApi`s. A subclass sets most_requests and overrides what raises NotImplementedError."""

    most_requests: int

    def __init__(self, llm: ChatSettings, what: str, place: str) -> None:
        self.llm, self.what, self.place = llm, what, place

    def create(self, uploaded: Any, name: str) -> str:
        """Creates a batch; returns its id. Unsure if it may exist; RagaugeError if it does not."""
        for attempt in range(self.llm.retries + 1):
            try:
                return id_of(self.created(uploaded, name), "of a creation")
            except Exception as error:
                if _may_have_made(error):
                    raise Unsure(shown(bad_response(error) or error)) from None
                self.pause_or_raise(error, attempt)
        raise AssertionError  # the last attempt raises

    def created(self, uploaded: Any, name: str) -> Any:
        """The provider's answer to one creation of a batch."""
        raise NotImplementedError

    def downloaded(
        self, file: str, n_requests: int, names: Collection[str], read: Callable[[Iterator[Line]], None]
    ) -> None:
        """Passes the lines of a file to `read`; again from the start if the connection breaks."""
        self.tried(lambda: read(self.lines(file, n_requests, names)))

    def lines(self, file: str, n_requests: int, names: Collection[str]) -> Iterator[Line]:
        """The lines of a file of replies, up to the size that so many requests can reach; BadResponse beyond."""
        of_one = _BYTES_OF_REPLY + _BYTES_OF_TOKEN * self.llm.token_bounds("")[1]
        most = LONGEST + of_one * min(n_requests or self.most_requests, self.most_requests)
        rest, n = bytearray(), 0
        for piece in download(lambda: self.opened(file), self.llm.timeout, most):
            rest += piece
            whole: list[bytes] = []
            if b"\n" in piece:
                *whole, last = bytes(rest).split(b"\n")
                rest = bytearray(last)
            n += len(whole)
            if n > 2 * self.most_requests:
                raise BadResponse(f"{file} has more than {2 * self.most_requests:,} lines")
            if len(rest) > LONGEST:
                raise BadResponse(f"a line of {file} is longer than {LONGEST >> 20} MiB")
            yield from (self._read(line, names) for line in whole if line.strip())
        if rest.strip():
            yield self._read(bytes(rest), names)

    def _read(self, data: bytes, names: Collection[str] | None = None) -> Line:
        """The parsed line, for requests of these names; a malformed line of a named request may have cost money."""
        try:
            about = {} if has_many_parts(data) else json.loads(data)
            name = about["custom_id"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return Line("")
        if not isinstance(name, str):
            return Line("")
        if names is not None and name not in names:
            return Line(name)
        try:
            return self.of_request(name, about)
        except Exception as error:  # whatever is made of a reply in another form
            return Line(name, error=shown(error), charged=True)

    def opened(self, file: str) -> AbstractAsyncContextManager[Any]:
        """The response with a file, as `download` takes it."""
        raise NotImplementedError

    def of_request(self, name: str, about: Mapping[str, Any]) -> Line:
        """Parses the JSON line of a request; may raise any error for a malformed one."""
        raise NotImplementedError

    def listed(self, page: Callable[[str | None], Any]) -> Iterator[Mapping[str, Any]]:
        """The batches of the provider's list, the newest first.

        page: the page behind an id, by default the first.   OddReply for a page that is none, BadResponse where the
        list has no end. No batch is missing from what is listed otherwise.
        """
        after, seen, until = None, set[str](), time.monotonic() + _SEARCH * self.llm.timeout
        while True:
            found = page(after)
            data = found.get("data") if isinstance(found, Mapping) else None
            if not isinstance(data, list):
                raise OddReply(f"the list of batches is none: {beginning(found)}")
            yield from (one for one in data if isinstance(one, Mapping))
            last = found.get("last_id") or (data[-1].get("id") if data and isinstance(data[-1], Mapping) else None)
            more = found.get("has_more")
            if more is False or (more is None and (not data or last in seen)):
                return
            if not isinstance(last, str) or not data or last in seen:
                raise OddReply("the list of batches says that it has more, and gives no next page")
            if len(seen) >= _MOST_PAGES or time.monotonic() > until:
                raise BadResponse(f"the list of batches does not end within {len(seen) + 1} pages")
            seen.add(last)
            after = last

    def parsed(self, work: Awaitable[Any], n_sent: int = 0) -> Any:
        """The JSON of a response of httpx; OddReply for anything else. n_sent: bytes of the request."""
        content = answer(work, self.llm.timeout, n_sent).content
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise OddReply(f"the answer is no JSON: {beginning(content.decode('utf-8', 'replace'))}") from None

    def tried(self, work: Callable[[], T]) -> T:
        """The result of repeatable work, retried like calls."""
        for attempt in range(self.llm.retries + 1):
            try:
                return work()
            except Exception as error:
                self.pause_or_raise(error, attempt)
        raise AssertionError  # the last attempt raises

    def pause_or_raise(self, error: Exception, attempt: int) -> None:
        """Waits before another attempt; raises if none is left, or none can succeed."""
        told = f"{self.what}: {self.llm.place}"
        if (bad := bad_response(error)) is not None:
            if isinstance(bad, Redirected):
                raise ConfigError(f"{told} {bad}; give the address itself") from None
            raise MissingError(f"{told}: {bad}; {_GOES_ON}") from None
        ours = not type(error).__module__.startswith(_CLIENTS) and not isinstance(error, (OSError, OddReply))
        if ours:
            raise error
        status, llm = status_of(error), self.llm
        if status == 404:
            raise ConfigError(
                f"{told} answers 404: it has no batches API, or does not know the batch, which "
                f"`ragauge batches forget` forgets: {shown(error)}"
            ) from None
        passing = status is None or status >= 500 or status in PASSING
        if not passing or has_no_money_left(error):
            raise ConfigError(f"{told} refuses with {status}: {shown(error)}") from None
        wait = retry_after(error)
        if attempt == llm.retries or wait > llm.max_wait:
            raise MissingError(f"{told}: {attempt + 1} attempt(s), the last: {shown(error)}; {_GOES_ON}") from None
        time.sleep(wait + random.uniform(0, min(llm.max_wait, llm.backoff * 2**attempt)))


_GOES_ON = "nothing is lost, and the same command goes on"


def _may_have_made(error: Exception) -> bool:
    """Whether the provider may have created the batch despite this error."""
    if isinstance(bad := bad_response(error), Redirected):
        return bad.status in (302, 303)  # the other ones say to send the same request elsewhere
    status = status_of(error)
    # 529 says that the API is overloaded: nothing was made.
    return not was_not_sent(error) and (status is None or status in (408, 409) or 500 <= status != 529)


def bad_response(error: BaseException) -> BadResponse | None:
    """The BadResponse that an error is or that a client wrapped."""
    return next((link for link in causes(error) if isinstance(link, BadResponse)), None)


def id_of(reply: Any, what: str) -> str:
    """The id in a provider's reply; OddReply if it has no valid one."""
    found = reply.get("id") if isinstance(reply, Mapping) else None
    if not isinstance(found, str) or not found.strip() or len(found) > _LONGEST_ID or not found.isprintable():
        raise OddReply(f"the reply {what} has no id: {beginning(reply)}")
    return found


def count_of(counts: Mapping[str, Any], *names: str) -> int:
    """The sum of the counts of these names; counts invalid ones as 0."""
    found = [counts.get(name) for name in names]
    return sum(n for n in found if isinstance(n, int) and not isinstance(n, bool) and n > 0)


def word_of(status: Any) -> str:
    """A batch's state in lower case, shortened; other values as JSON."""
    return beginning(status.lower() if isinstance(status, str) else status)


def beginning(reply: Any) -> str:
    """The first characters of a reply, on one line."""
    text = reply if isinstance(reply, str) else json.dumps(reply)
    return visible(redacted_beginning(text, _SHOWN), one_line=True)


def shown(error: Exception) -> str:
    """The error with its class, without keys, cut to the length of a line."""
    return redact(f"{type(error).__name__}: {error}"[:_LONGEST_ERROR])[:500]


def told(error: Any) -> str:
    """Code or type and message of a provider's error, or the whole value, on one line."""
    if isinstance(error, Mapping):
        error = ": ".join(str(error[name]) for name in ("code", "type", "message") if error.get(name)) or error
    return " ".join(redact(str(error)[:_LONGEST_ERROR]).split())[:500]
