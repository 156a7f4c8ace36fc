"""The outcome of an attempt at a call: text, reason of ending and usage, or an error and the cost it may have.

A reply whose usage is not known is charged at the most it can cost. The same holds for an attempt that the server may
have worked on without a reply reaching us. A reply that its caller's reader cannot read is kept in the ledger, and
asked for again. This happens once in the same run, and again in later runs, up to a limit.
"""

from __future__ import annotations

import dataclasses
import email.utils
import math
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ragauge.contract.current_job import of_this_run
from ragauge.contract.errors import causes
from ragauge.contract.protocols import CUT, Reader, Reply
from ragauge.contract.redact import redact
from ragauge.contract.visible import is_blank, visible
from ragauge.llms.chat_use import MOST_UNREAD
from ragauge.llms.json_replies import json_of
from ragauge.llms.ledger import Call, Ledger

_CUT_REASONS = frozenset({"length", "max_tokens", "MAX_TOKENS"})
# Their complete replies say why they ended; one that does not was cut by the connection.
_SAY_WHY_THEY_END = ("langchain_openai", "langchain_ollama")
# Errors of clients after which no server has seen the request.
_NOT_SENT = frozenset(
    {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol", "InvalidURL"}
)
_GATEWAY_TIMEOUTS = frozenset({408, 504, 524})  # the model behind the gateway may have answered
_MOST_TOKENS = 10**9  # above this a number is no count of one call's tokens


@dataclass(frozen=True)
class Received:
    """A reply as it came: text, reason of ending, and token counts, None where the server does not tell.

    `refused` says why it is no answer although it was paid for, None where it is one. `cost_usd` is what the
    server says that it cost, None where it does not.
    """

    text: str
    finish: str
    prompt_tokens: int | None
    completion_tokens: int | None
    refused: str | None
    cost_usd: float | None = None


def read_message(message: Any, target: str) -> Received:
    """The reply that a message of the LangChain class `target` is; a client of ours says it itself."""
    if isinstance(message, Received):
        return message
    about = message.response_metadata or {}
    finish = next((about[k] for k in ("finish_reason", "done_reason", "stop_reason") if about.get(k)), None)
    text = str(message.text)
    refused = None
    if finish is None and target.startswith(_SAY_WHY_THEY_END):
        refused = "the connection ended before the reply did"
    elif is_blank(text):
        refused = "an empty reply"
    try:
        prompt, completion = (tokens(count) for count in _counts(message))
    except ValueError as error:
        prompt, completion, refused = None, None, str(error)
    # No prompt has 0 tokens, and no text has: the server did not count.
    prompt = prompt or None
    completion = None if completion == 0 and text.strip() else completion
    return Received(text, str(finish or ""), prompt, completion, refused)


def _counts(message: Any) -> tuple[Any, Any]:
    """Prompt and completion tokens as the server wrote them, None where it did not."""
    about = message.response_metadata or {}
    # The clients make 0 of a count that is missing, so that the server's own words come first.
    of_openai = about.get("token_usage")
    for found, names in (
        (of_openai if isinstance(of_openai, Mapping) else {}, ("prompt_tokens", "completion_tokens")),
        (about, ("prompt_eval_count", "eval_count")),
        (message.usage_metadata or {}, ("input_tokens", "output_tokens")),
    ):
        if any(name in found for name in names):
            return found.get(names[0]), found.get(names[1])
    return None, None


def tokens(count: Any) -> int | None:
    """A count of tokens as a server wrote it, rounded up; None for none. ValueError for anything else."""
    if count is None:
        return None
    number = isinstance(count, (int, float)) and not isinstance(count, bool)
    if not number or not 0 <= count <= _MOST_TOKENS:  # NaN is not within, either
        raise ValueError(f"a usage that is no number of tokens: {repr(count)[:40]}")
    return math.ceil(count)


def as_reply(call: Call) -> Reply:
    """The reply that a finished call is."""
    return Reply(
        text=call.text,
        error=CUT if call.finish in _CUT_REASONS else None,
        prompt_tokens=call.prompt_tokens,
        completion_tokens=call.completion_tokens,
        cost_usd=call.cost_usd,
        seconds=call.seconds,
        calls=1,
        usage_unknown=int(call.usage_unknown),
    )


def as_cached(reply: Reply) -> Reply:
    """The reply as it is when it came without payment: marked, with its tokens, at no cost and time."""
    return dataclasses.replace(reply, cost_usd=0.0, seconds=0.0, cached=True)


def as_repeated(reply: Reply) -> Reply:
    """The reply to an equal request: cached, or the same failure, which was paid for once."""
    if reply.text is not None:
        return as_cached(reply)
    return Reply(None, reply.error)


def with_call(reply: Reply, call: Call) -> Reply:
    """The reply with a call's tokens and cost added."""
    return dataclasses.replace(
        reply,
        prompt_tokens=reply.prompt_tokens + call.prompt_tokens,
        completion_tokens=reply.completion_tokens + call.completion_tokens,
        cost_usd=reply.cost_usd + call.cost_usd,
        calls=reply.calls + 1,
        usage_unknown=reply.usage_unknown + call.usage_unknown,
    )


def together(first: Reply, second: Reply) -> Reply:
    """The second reply, or the first where none came, with the tokens, cost, calls and time of both.

    Where only one of them was paid now, the tokens and calls are its own.
    """
    paid = [reply for reply in (first, second) if not reply.cached] or [first, second]
    return dataclasses.replace(
        second,
        text=first.text if second.text is None else second.text,
        prompt_tokens=sum(reply.prompt_tokens for reply in paid),
        completion_tokens=sum(reply.completion_tokens for reply in paid),
        cost_usd=first.cost_usd + second.cost_usd,
        seconds=first.seconds + second.seconds,
        cached=first.cached and second.cached,
        calls=sum(reply.calls for reply in paid),
        usage_unknown=sum(reply.usage_unknown for reply in paid),
    )


def status_of(error: Exception) -> int | None:
    """The HTTP status with which the server refused, None where it sent none."""
    for link in causes(error):
        for holder in (link, getattr(link, "response", None)):
            status = getattr(holder, "status_code", None)
            if isinstance(status, int) and status >= 400:
                return status
    return None


def may_have_cost(error: Exception) -> bool:
    """Whether the server may have worked on the request, and charged for it, before the error.

    An error that the server itself reports costs nothing, nor does one before the request was sent.
    """
    status = status_of(error)
    if status is not None:
        return status in _GATEWAY_TIMEOUTS
    return not was_not_sent(error) and not any(isinstance(link, UnicodeEncodeError) for link in causes(error))


def was_not_sent(error: Exception) -> bool:
    """Whether the error says that no connection to the server was made."""
    return any(
        type(link).__name__ in _NOT_SENT or isinstance(link, (ConnectionRefusedError, socket.gaierror))
        for link in causes(error)
    )


def retry_after(error: Exception) -> float:
    """Seconds that the server asks to wait, 0 where it does not say."""
    for link in causes(error):
        headers = getattr(getattr(link, "response", None), "headers", None)
        value = headers.get("retry-after") if headers is not None else None
        if value is None:
            continue
        try:
            return max(0.0, float(value))
        except ValueError:
            try:
                until = email.utils.parsedate_to_datetime(value)
            except ValueError:
                return 0.0
            until = until if until.tzinfo else until.replace(tzinfo=UTC)
            return max(0.0, (until - datetime.now(UTC)).total_seconds())
    return 0.0


ASKS_A_RUN = 2  # one reply may be a slip of the model; two of them are not
_SHOWN = 200  # characters of a reply that are shown
_EXAMPLES = re.compile(r"xamples? of the form[^:]*:\s")  # what stands behind it is the prompt's last part
_OBJECT = re.compile(r"^\{.+$", re.MULTILINE)


def can_be_read(reply: Reply, read: Reader | None) -> bool:
    """False for a reply with a text that its reader cannot read."""
    return reply.text is None or read is None or read(reply) is not None


def known_replies(ledger: Ledger, keys: Sequence[str], readers: Mapping[str, Reader]) -> dict[str, Reply]:
    """The ledger's replies by key, as cached: those that are not to be asked for now.

    These are the replies that can be read. One that cannot is among them where this run has asked for it
    ASKS_A_RUN times, or all runs together MOST_UNREAD times.
    """
    found = {key: as_cached(as_reply(call)) for key, call in ledger.find(keys).items()}
    known = {key: reply for key, reply in found.items() if can_be_read(reply, readers.get(key))}
    for key, calls in ledger.unread([key for key in keys if key in readers and key not in known]).items():
        of_run = sum(of_this_run(call.unread_at or 0.0) for call in calls)
        if len(calls) >= MOST_UNREAD or of_run >= ASKS_A_RUN:
            known[key] = as_cached(as_reply(calls[-1]))
    return known


def shown(raw: str, form: str) -> str:
    """`{"class": 5}; expected {"label": 1 to 5}`: a reply on one line beside its form, and a wrong key.

    The key is named and not taken for the one that is read.
    """
    text = visible(redact(raw), one_line=True)
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    said, wanted = json_of(redact(raw)), set(re.findall(r'"(\w+)":', form))
    others = sorted(set(said) - wanted) if isinstance(said, dict) and wanted else []
    lacking = sorted(wanted - set(said)) if others else []
    differs = f"; the reply has {others[0]!r}, and {lacking[0]!r} is read" if lacking else ""
    return f"{text}; expected {form}{differs}" if form else text


def form_in(prompt: str) -> str:
    """The form that a prompt asks for, on one line: its last JSON object, else its examples of the form.

    The documents and answers in a prompt stand before its examples. "" where the prompt shows no form.
    """
    *before, last = _EXAMPLES.split(prompt)
    objects: list[str] = _OBJECT.findall(last)
    form = objects[-1] if objects else last if before else ""
    return visible(form, one_line=True)[:_SHOWN]
