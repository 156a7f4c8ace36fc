"""The outcome of an attempt at a call: text, finish reason and usage, or an error and its possible cost.

A reply whose usage is not known is charged at the most it can cost. The same holds for an attempt that the server may
have worked on without a reply reaching us. The ledger keeps a reply that its caller's reader cannot read. It is asked
for once more by another request (`ragauge.llms.asked`), and once by each later run, up to a limit. Later runs alone
ask again for a reply that the server withheld.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragauge.contract.current_job import of_this_run
from ragauge.contract.redact import redact
from ragauge.contract.replies import CUT, Reader, Reply
from ragauge.contract.usage import Usage
from ragauge.contract.visible import is_blank, visible
from ragauge.llms.chat_use import MOST_UNREAD
from ragauge.llms.finished import Call
from ragauge.llms.json_replies import json_of
from ragauge.llms.ledger import Ledger
from ragauge.llms.prompts import Filled
from ragauge.llms.thoughts import without_thoughts
from ragauge.llms.usage import of_message, of_openai
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
# Fields of a message that hold thoughts: DeepSeek, vLLM and llama.cpp; OpenRouter and newer vLLM; Ollama.
THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_ONLY_THOUGHTS = "thoughts and no answer"
_NO_ROOM = "the token limit was reached"


@dataclass(frozen=True)
class Received:
    """A raw reply: text, finish reason, and usage as the server reports it.

    `refused` says why it is no answer although it was paid for, None where it is one; `again` is whether another
    attempt may bring one. `billed` is the server's own report of the cost in US dollars, None where it gives none.
    `thoughts` is the model's text before its answer.
    """

    text: str
    finish: str
    usage: Usage
    refused: str | None
    billed: float | None = None
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
        return f"{_NO_ROOM} {'by thoughts, ' if received.thoughts else ''}before any text", False
    return (_ONLY_THOUGHTS, False) if received.thoughts else ("an empty reply", True)


def _of_langchain(message: Any, target: str) -> Received:
    about = message.response_metadata or {}
    names = ("finish_reason", "done_reason", "stop_reason", "stopReason")
    finish = next((about[name] for name in names if about.get(name)), None)
    if finish is None and about.get("status"):  # OpenAI's responses
        finish = (about.get("incomplete_details") or {}).get("reason") or about["status"]
    beside = message.additional_kwargs or {}
    return _received(
        str(message.text), finish, of_message(message), _thoughts({**about, **beside}, message.content),
        beside.get("refusal"), bool(getattr(message, "tool_calls", None)), target.startswith(_SAY_WHY_THEY_END),
    )  # fmt: skip


def of_completion(body: Any) -> Received:
    """The reply in a response of OpenAI's chat completions, from its JSON; ValueError if there is none."""
    choices = body.get("choices") if isinstance(body, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    error = body.get("error") if isinstance(body, Mapping) else None
    if error or not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise ValueError(message_of(error) if error else "the response has no choice with a message")
    content, error = message.get("content"), choice.get("error")
    return _received(
        _text_of(content), f"error: {message_of(error)}" if error else choice.get("finish_reason"), of_openai(body),
        _thoughts(message, content), message.get("refusal"), bool(message.get("tool_calls")), True,
    )  # fmt: skip


def message_of(error: Any) -> str:
    """The text of an error in a response's body."""
    return str(error.get("message") or error) if isinstance(error, Mapping) else str(error)


def _text_of(content: Any) -> str:
    """The text of a message's content: a text, a number, an object with a text, or a list of these."""
    if isinstance(content, list):
        return "".join(map(_text_of, content))
    if isinstance(content, Mapping):
        content = content.get("text") if content.get("type", "text") == "text" else None
    is_text = isinstance(content, (str, int, float)) and not isinstance(content, bool)
    return str(content) if is_text else ""


def _received(
    text: str, finish: Any, usage: Usage, thoughts: str, refusal: Any, calls_tool: bool, says_why: bool
) -> Received:
    """A raw reply from its parts. says_why: whether its server gives every whole reply a reason of ending."""
    refused, again = None, True
    if finish is None and says_why:
        refused = "the connection ended before the reply did"
    elif is_blank(text) and refusal:
        refused, again = f"the model refuses: {without_surrogates(str(refusal))}", False
    elif is_blank(text) and calls_tool:
        refused, again = "a call of a tool, and no text", False
    # No prompt has 0 tokens, and no text has: the server did not count.
    completion = None if usage.completion_tokens == 0 and text.strip() else usage.completion_tokens
    usage = dataclasses.replace(usage, prompt_tokens=usage.prompt_tokens or None, completion_tokens=completion)
    return Received(text, str(finish or ""), usage, refused, thoughts=thoughts, again=again)


def _thoughts(fields: Mapping[str, Any], content: Any) -> str:
    """A message's thoughts, from its fields or parts of its content."""
    found = [fields[name] for name in THOUGHTS if fields.get(name)][:1]  # servers say the same under two names
    if isinstance(content, list):
        parts = (part for part in content if isinstance(part, Mapping))
        found += [part for part in parts if "think" in str(part.get("type")) or "reason" in str(part.get("type"))]
    return "\n\n".join(filter(None, map(_plain_text, found)))


def _plain_text(thought: Any) -> str:
    """The text of a thought: a text, parts, or an object that holds them."""
    if isinstance(thought, str):
        return thought.strip()
    if isinstance(thought, Mapping):
        thought = [thought[name] for name in (*THOUGHTS, "text", "summary", "content") if thought.get(name)]
    return "\n".join(filter(None, map(_plain_text, thought))) if isinstance(thought, Sequence) else ""


def as_reply(call: Call) -> Reply:
    """The reply of a finished call; if that is no answer, without text and with the reason as error."""
    error = call.finish if call.text is None else CUT if is_cut(call.finish) else None
    return answer_alone(
        Reply(
            text=call.text,
            error=error,
            usage=call.usage,
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
    """The reply marked as cached: with the tokens and seconds of its call, at no cost."""
    return dataclasses.replace(reply, usage=dataclasses.replace(reply.usage, cost_usd=0.0), cached=True)


def as_repeated(reply: Reply) -> Reply:
    """The reply to an equal request: cached, or the same failure at no further cost."""
    if reply.text is not None:
        return as_cached(reply)
    return Reply(None, reply.error)


def together(first: Reply, second: Reply) -> Reply:
    """The second reply, or else the first, with the usage of both; where one alone was paid now, with its own."""
    paid = [reply.usage for reply in (first, second) if not reply.cached] or [first.usage, second.usage]
    return dataclasses.replace(
        second,
        text=first.text if second.text is None else second.text,
        usage=sum(paid[1:], paid[0]),
        cached=first.cached and second.cached,
    )


ASKED_TWICE = 2  # one reply may be a slip of the model; two of them are not
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
        if len(tried) >= MOST_UNREAD or (of_run and asked_enough(len(tried), as_reply(of_run[-1]))):
            known[key] = as_cached(as_reply(tried[-1]))
    return known


def asked_enough(times: int, reply: Reply) -> bool:
    """Whether a run should stop asking, after so many unreadable replies or missing answers.

    The server would withhold again what it withheld once.
    """
    return times >= ASKED_TWICE or (reply.text is None and not was_cut(reply))


def was_cut(reply: Reply) -> bool:
    """Whether the token limit ended a reply, in its text or before any."""
    error = reply.error or ""
    return error == CUT or (reply.text is None and _NO_ROOM in error)


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
