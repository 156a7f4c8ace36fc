"""The meaning of an error: whether a call is made again, may have cost something, or ends the batch.

- No reply in time: the call is made again with more time, and may have cost something.
- No connection to a server that was there, or status 503: the server is waited for, which counts as no attempt.
- 408, 409, 425, 429 and 5xx: the call is made again after the pause that the server asks for. 408, 504 and 524 may
  have cost something.
- Any other 4xx is the request's own fault: it fails.
- A broken connection or an odd reply: the call is made again, and may have cost something.
- `Stop` where every call would fail: a wrong key or right, no such model or path, no money left, a redirection, or a
  port of this machine where nothing listens.
"""

from __future__ import annotations

import email.utils
import json
import logging
import math
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ragauge.contract.errors import ConfigError, RagaugeError, ServerGoneError, causes
from ragauge.contract.redact import redact
from ragauge.contract.visible import visible
from ragauge.llms.clients import BadResponse, Redirected
from ragauge.llms.finished import Call
from ragauge.llms.patience import Patience, is_loading

log = logging.getLogger(__name__)

_FATAL = frozenset({401, 402, 403, 404, 405, 407})
_OF_KEYS = frozenset({401, 403})
_PASSING = frozenset({408, 409, 425, 429})  # client errors that pass with time
_TOO_MANY = frozenset({429, 504, 529})  # what servers say that have too much to do, beside 503
_OUT_OF_MONEY = "insufficient_quota"
_GATEWAY_TIMEOUTS = frozenset({408, 504, 524})  # the model behind the gateway may have answered
# Errors of clients after which no server has seen the request.
_NOT_SENT = frozenset(
    {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol", "InvalidURL"}
)
_LONGEST_ERROR = 20_000  # characters of a server's error that are searched for keys
TOLD = 500  # of them that are told


class Stop(Exception):
    """Ends a batch early; holds the error to raise after the calls in flight."""

    def __init__(self, error: RagaugeError) -> None:
        super().__init__(str(error))
        self.error = error


class Skipped(Exception):
    """A request of another job is left to that job: it is asked elsewhere now, or the budget has no room."""


class Failed(Exception):
    """A failed attempt; `wait` is the server's requested delay, None if a retry is useless.

    `charged` is whether it cost something, or may have. `refused`: whether the server has too many calls in flight.
    `away` is whether the server is not in service, `late` whether the reply did not come in time. `call`: the attempt
    in the ledger, if it was charged.
    """

    def __init__(
        self,
        why: str,
        wait: float | None = 0.0,
        charged: bool = False,
        refused: bool = False,
        away: bool = False,
        late: bool = False,
    ) -> None:
        super().__init__(why)
        self.wait = wait
        self.charged = charged
        self.refused, self.away, self.late = refused, away, late
        self.call: Call | None = None


def meaning_of(error: Exception, patience: Patience) -> Failed:
    """The failed attempt for an error of the batch that `patience` is of; raises Stop if every call would fail."""
    # Some clients put an error of their own, which says nothing, around what a response of theirs met.
    error = next((link for link in causes(error) if isinstance(link, BadResponse)), error)
    if isinstance(error, Redirected):
        raise Stop(
            ConfigError(f"{patience.what}: {patience.place} {redact(str(error))}; give the address itself")
        ) from None
    unsent = was_not_sent(error)
    why, detail = f"{type(error).__name__}: {error}", told_in(error).strip()
    if detail and detail not in why:
        why += f": {detail}"
    why = visible(redact(why[:_LONGEST_ERROR]), one_line=True)[:TOLD]
    status = status_of(error)
    loads = is_loading(status, detail)
    if loads or (unsent and patience.reached):
        return Failed(why, wait=retry_after(error), refused=loads, away=True)
    if unsent and patience.never_there():
        raise Stop(
            ServerGoneError(f"{patience.what}: nothing listens at {patience.place}: {why}", patience.address)
        ) from None
    if not unsent:
        patience.answered()
    if status in _FATAL or has_no_money_left(error):
        key = f"; the key is read from {patience.key_env}" if status in _OF_KEYS and patience.key_env else ""
        raise Stop(ConfigError(f"{patience.what}: {patience.place} refuses with {status}: {why}{key}")) from None
    own_fault = status is not None and 400 <= status < 500 and status not in _PASSING
    if own_fault or isinstance(error, UnicodeEncodeError):
        return Failed(why, wait=None)
    return Failed(why, wait=retry_after(error), charged=may_have_cost(error), refused=status in _TOO_MANY)


def status_of(error: Exception) -> int | None:
    """The HTTP status of the server's refusal; None without one."""
    for link in causes(error):
        for holder in (link, getattr(link, "response", None)):
            status = getattr(holder, "status_code", None)
            if isinstance(status, int) and status >= 400:
                return status
    return None


def has_no_money_left(error: Exception) -> bool:
    """Whether the account has no money left, which OpenAI tells by a code beside the status of too many calls."""
    return status_of(error) == 429 and _OUT_OF_MONEY in f"{error} {_body_of(error)}"


def told_in(error: Exception) -> str:
    """The server's message in the body of a refusal; "" if unreadable."""
    text = _body_of(error)
    try:
        return _detail(json.loads(text)) or text
    except (ValueError, RecursionError):
        return "" if text.lstrip().startswith("<") else text  # a page of HTML says less than the status


def _body_of(error: Exception) -> str:
    """The body of a refusal; "" if unreadable."""
    for link in causes(error):
        response = getattr(link, "response", None)
        if response is None or getattr(response, "status_code", 0) < 400:
            continue
        try:
            return str(response.text)
        except Exception as unread:  # httpx raises where the body was never read
            log.debug("no body of a response: %s", unread)
    return ""


_DETAIL = ("message", "detail", "error", "errors", "msg", "error_description", "title")
_MOST_DETAILS = 3


def _detail(body: Any) -> str:
    """The message in an error's body under any of the usual keys; for a list, of its first entries."""
    if isinstance(body, str):
        return body
    if isinstance(body, list):
        return "; ".join(filter(None, map(_detail, body[:_MOST_DETAILS])))
    if not isinstance(body, Mapping):
        return ""
    said = next(filter(None, (_detail(body.get(name)) for name in _DETAIL)), "")
    where = body.get("loc")  # of FastAPI and pydantic
    return f"{'.'.join(map(str, where))}: {said}" if said and isinstance(where, list) else said


def may_have_cost(error: Exception) -> bool:
    """Whether the server may have processed and charged the request before the error.

    An error that the server itself reports costs nothing, nor does one before the request was sent.
    """
    status = status_of(error)
    if status is not None:
        return status in _GATEWAY_TIMEOUTS
    return not was_not_sent(error) and not any(isinstance(link, UnicodeEncodeError) for link in causes(error))


def was_not_sent(error: Exception) -> bool:
    """Whether the error means that no connection to the server was made."""
    return any(
        type(link).__name__ in _NOT_SENT or isinstance(link, (ConnectionRefusedError, socket.gaierror))
        for link in causes(error)
    )


def retry_after(error: Exception) -> float:
    """The server's requested wait in seconds; 0 without one.

    `retry-after-ms` (OpenAI, Azure) is milliseconds; Retry-After is seconds, an `s` behind them allowed, or a date.
    """
    for link in causes(error):
        headers = getattr(getattr(link, "response", None), "headers", None)
        if headers is None:
            continue
        milliseconds = _seconds(headers.get("retry-after-ms"))
        asked = _seconds(headers.get("retry-after")) if milliseconds is None else milliseconds / 1000
        if asked is not None:
            return asked
    return 0.0


def _seconds(value: str | None) -> float | None:
    """A header's number, or the seconds from now to its date, at least 0; None for neither."""
    if value is None:
        return None
    try:
        number = float(value.strip().removesuffix("s"))
        return None if math.isnan(number) else max(0.0, number)
    except ValueError:
        pass
    try:
        until = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
