"""The outcome of an attempt at a call: text, finish reason and usage, or an error and its possible cost.

A reply whose usage is not known is charged at the most it can cost. The same holds for an attempt that the server may
have worked on without a reply reaching us. A reply that its caller's reader cannot read is kept in the ledger, and
asked for again. This happens once in the same run, and again in later runs, up to a limit. A reply that was cut, and
one that is no answer in a way that another attempt would repeat, is asked for again by later runs alone.
"""

from __future__ import annotations

import dataclasses
import email.utils
import json
import logging
import math
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ragauge.contract.current_job import of_this_run
from ragauge.contract.errors import causes
from ragauge.contract.redact import redact
from ragauge.contract.replies import CUT, Reader, Reply
from ragauge.contract.visible import is_blank, visible
from ragauge.llms.chat_use import MOST_UNREAD
from ragauge.llms.json_replies import json_of
from ragauge.llms.ledger import Call, Ledger
from ragauge.llms.prompts import Filled
from ragauge.llms.thoughts import without_thoughts
from ragauge.texts.surrogates import without_surrogates

log = logging.getLogger(__name__)

# Reasons of ending as servers and LangChain's classes write them, in any case of letters. Any other reason is an end
# that the model chose: servers have many words for it.
_CUT_REASONS = re.compile(
    "(max_?)?length|max_?(output_|new_|completion_)?tokens|model_length|token_limit|(model_)?context_window(_exceeded)?",
    re.I,
)
_BROKEN = re.compile(
    "error|abort|cancel|fail|interrupt|unknown|unspecified|insufficient|overload|time_?(out|limit)|^other$", re.I
)
_WITHHELD = re.compile(
    "filter|safety|block|prohibited|refus|recitation|spii|sensitive|guardrail|intervened|malform", re.I
)
# Their complete replies say why they ended; one that does not was cut by the connection.
_SAY_WHY_THEY_END = ("langchain_openai", "langchain_ollama")
# Errors of clients after which no server has seen the request.
_NOT_SENT = frozenset(
    {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol", "InvalidURL"}
)
_GATEWAY_TIMEOUTS = frozenset({408, 504, 524})  # the model behind the gateway may have answered
# Fields of a message that hold thoughts: DeepSeek, vLLM and llama.cpp; OpenRouter and newer vLLM; Ollama.
THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_ONLY_THOUGHTS = "thoughts and no answer"
_MOST_TOKENS = 10**9  # above this a number is no count of one call's tokens


@dataclass(frozen=True)
class Received:
    """A raw reply: text, finish reason, and token counts (None if not reported).

    `refused` says why it is no answer although it was paid for, None where it is one; `again` is whether another
    attempt may bring one. `cost_usd` is what the server says that it cost, None where it does not. `thoughts` is what
    the model wrote before its answer.
    """

    text: str
    finish: str
    prompt_tokens: int | None
    completion_tokens: int | None
    refused: str | None
    cost_usd: float | None = None
    thoughts: str = ""
    again: bool = True


def is_cut(finish: str) -> bool:
    """Whether a finish reason means that the token limit ended the reply."""
    return _CUT_REASONS.fullmatch(finish.strip()) is not None


def read_message(message: Any, target: str) -> Received:
    """The reply in a message of the LangChain class `target`, or the one attached by ragauge's clients.

    The text is without the thoughts at its beginning, and can be written as UTF-8.
    """
    received = message if isinstance(message, Received) else _of_langchain(message, target)
    text, within = without_thoughts(without_surrogates(received.text))
    thoughts = "\n\n".join(filter(None, (without_surrogates(received.thoughts).strip(), within)))
    received = dataclasses.replace(received, text=text, thoughts=thoughts, finish=without_surrogates(received.finish))
    if received.refused is not None:
        return received
    refused, again = _why_no_answer(received)
    return dataclasses.replace(received, refused=refused, again=again)


def _why_no_answer(received: Received) -> tuple[str | None, bool]:
    """Why a reply is no answer (None if it is one), and whether a retry may help."""
    finish = received.finish
    if _WITHHELD.search(finish):
        return f"the server withheld the reply: it ended with {finish!r}", False
    if _BROKEN.search(finish):
        return f"the reply is not whole: it ended with {finish!r}", True
    if not is_blank(received.text):
        return None, True
    if is_cut(finish):
        return f"the token limit was reached {'by thoughts, ' if received.thoughts else ''}before any text", False
    return (_ONLY_THOUGHTS, False) if received.thoughts else ("an empty reply", True)


def _of_langchain(message: Any, target: str) -> Received:
    about = message.response_metadata or {}
    names = ("finish_reason", "done_reason", "stop_reason", "stopReason")
    finish = next((about[name] for name in names if about.get(name)), None)
    if finish is None and about.get("status"):  # OpenAI's responses
        finish = (about.get("incomplete_details") or {}).get("reason") or about["status"]
    text = str(message.text)
    beside = message.additional_kwargs or {}
    refused, again = None, True
    if finish is None and target.startswith(_SAY_WHY_THEY_END):
        refused = "the connection ended before the reply did"
    elif is_blank(text) and beside.get("refusal"):
        refused, again = f"the model refuses: {without_surrogates(str(beside['refusal']))}", False
    elif is_blank(text) and getattr(message, "tool_calls", None):
        refused, again = "a call of a tool, and no text", False
    prompt, completion = token_counts(*_counts(message))
    # No prompt has 0 tokens, and no text has: the server did not count.
    prompt = prompt or None
    completion = None if completion == 0 and text.strip() else completion
    return Received(text, str(finish or ""), prompt, completion, refused, thoughts=_thoughts(message), again=again)


def _thoughts(message: Any) -> str:
    """A message's thoughts, from its fields or parts of its content."""
    fields = {**(message.response_metadata or {}), **(message.additional_kwargs or {})}
    found = [fields[name] for name in THOUGHTS if fields.get(name)][:1]  # servers say the same under two names
    if isinstance(message.content, list):
        parts = (part for part in message.content if isinstance(part, Mapping))
        found += [part for part in parts if "think" in str(part.get("type")) or "reason" in str(part.get("type"))]
    return "\n\n".join(filter(None, map(_plain_text, found)))


def _plain_text(thought: Any) -> str:
    """The text of a thought: a text, parts, or an object that holds them."""
    if isinstance(thought, str):
        return thought.strip()
    if isinstance(thought, Mapping):
        thought = [thought[name] for name in (*THOUGHTS, "text", "summary", "content") if thought.get(name)]
    return "\n".join(filter(None, map(_plain_text, thought))) if isinstance(thought, Sequence) else ""


def _counts(message: Any) -> tuple[Any, Any]:
    """Prompt and completion tokens as reported; None if absent."""
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


def token_counts(prompt: Any, completion: Any) -> tuple[int | None, int | None]:
    """Reported token counts, rounded up; None for an absent one.

    Where one of them is no number of tokens, neither is believed.
    """
    found = list[int | None]()
    for count in (prompt, completion):
        number = isinstance(count, (int, float)) and not isinstance(count, bool)
        if count is not None and not (number and 0 <= count <= _MOST_TOKENS):  # NaN is not within, either
            return None, None
        found.append(None if count is None else math.ceil(count))
    return found[0], found[1]


def as_reply(call: Call) -> Reply:
    """The reply of a finished call; if that is no answer, without text and with the reason as error."""
    error = call.finish if call.text is None else CUT if is_cut(call.finish) else None
    return answer_alone(
        Reply(
            text=call.text,
            error=error,
            prompt_tokens=call.prompt_tokens,
            completion_tokens=call.completion_tokens,
            cost_usd=call.cost_usd,
            seconds=call.seconds,
            calls=1,
            usage_unknown=int(call.usage_unknown),
            thoughts=call.thoughts,
        )
    )


def answer_alone(reply: Reply) -> Reply:
    """The reply with leading thoughts separated, and its text valid in UTF-8.

    So are replies that were recorded elsewhere, and those that an earlier version kept. One that is thoughts alone has
    no text, and says so as its error.
    """
    if reply.text is None:
        return reply
    text, within = without_thoughts(without_surrogates(reply.text))
    thoughts = "\n\n".join(filter(None, (reply.thoughts, within))) or None
    if within and is_blank(text):
        return dataclasses.replace(reply, text=None, error=_ONLY_THOUGHTS, thoughts=thoughts)
    return dataclasses.replace(reply, text=text, thoughts=thoughts)


def as_cached(reply: Reply) -> Reply:
    """The reply marked as cached: with its tokens, at no cost and time."""
    return dataclasses.replace(reply, cost_usd=0.0, seconds=0.0, cached=True)


def as_repeated(reply: Reply) -> Reply:
    """The reply to an equal request: cached, or the same failure at no further cost."""
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
    """The second reply, or else the first, with the tokens, cost, calls and time of both.

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
    """The HTTP status of the server's refusal; None without one."""
    for link in causes(error):
        for holder in (link, getattr(link, "response", None)):
            status = getattr(holder, "status_code", None)
            if isinstance(status, int) and status >= 400:
                return status
    return None


def told_in(error: Exception) -> str:
    """The server's message in the body of a refusal; "" if unreadable."""
    for link in causes(error):
        response = getattr(link, "response", None)
        if response is None or getattr(response, "status_code", 0) < 400:
            continue
        try:
            text = str(response.text)
        except Exception as unread:  # httpx raises where the body was never read
            log.debug("no body of a response: %s", unread)
            continue
        try:
            return _detail(json.loads(text)) or text
        except (ValueError, RecursionError):
            return "" if text.lstrip().startswith("<") else text  # a page of HTML says less than the status
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


ASKS_A_RUN = 2  # one reply may be a slip of the model; two of them are not
_SHOWN = 200  # characters of a reply that are shown
_EXAMPLES = re.compile(r"xamples? of the form[^:]{0,200}:\s")  # in prompts of users, whose last part they are
_OBJECT = re.compile(r"^\{.+$", re.MULTILINE)


def can_be_read(reply: Reply, read: Reader | None) -> bool:
    """False for a reply whose text its reader cannot read."""
    return reply.text is None or read is None or read(reply) is not None


def known_replies(ledger: Ledger, keys: Sequence[str], readers: Mapping[str, Reader]) -> dict[str, Reply]:
    """The ledger's replies by key, as cached, which need no call now.

    These are the replies that can be read. One that cannot, or is no answer, is among them where this run has asked
    for it often enough (`asked_enough`), or all runs together MOST_UNREAD times.
    """
    calls = ledger.find(keys)
    found = {key: as_cached(as_reply(call)) for key, call in calls.items()}
    known = {
        key: reply for key, reply in found.items() if reply.text is not None and can_be_read(reply, readers.get(key))
    }
    rest = [key for key in keys if key not in known and (key in readers or key in found)]
    tries = ledger.unread(rest)
    for key in rest:
        last = [calls[key]] if key in found and found[key].text is None else []
        tried = [*tries.get(key, []), *last]
        of_run = [call for call in tried if of_this_run(call.unread_at or 0.0)]
        if len(tried) >= MOST_UNREAD or (of_run and asked_enough(len(of_run), as_reply(of_run[-1]))):
            known[key] = as_cached(as_reply(tried[-1]))
    return known


def asked_enough(times: int, reply: Reply) -> bool:
    """Whether a run should stop asking for an unreadable reply or a missing answer.

    A reply that was cut would be cut again, and what is no answer for good would be none again.
    """
    return times >= ASKS_A_RUN or reply.text is None or reply.error == CUT


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
    """A prompt's requested form on one line: the last JSON object of its own words, else its examples.

    "" where the prompt shows no form.
    """
    *before, last = _EXAMPLES.split(prompt.own if isinstance(prompt, Filled) else prompt)
    objects: list[str] = _OBJECT.findall(last)
    form = objects[-1] if objects else last if before else ""
    return visible(form, one_line=True)[:_SHOWN]
