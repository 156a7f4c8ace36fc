"""A chat server that attacks whoever asks it: replies that lie, break, stall or never end, by name.

`ATTACKS` holds every mode by name; the first line of each says what it does. OpenAI's protocol only.
"""

from __future__ import annotations

import functools
import gzip
import json
import time
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

from chat_server import ChatServer, Schedule, on_one_line

Body = dict[str, Any]
# A mode changes the reply that would have been sent (and returns None), or returns the bytes of the body.
Attack = Callable[[Body], bytes | None]

ATTACKS: dict[str, Attack] = {}
# Status, headers and the like, where a mode needs others than 200 and JSON.
HEADS: dict[str, tuple[int, dict[str, str]]] = {
    "html": (200, {"Content-Type": "text/html"}),
    "html_502": (502, {"Content-Type": "text/html"}),
    "status_500": (500, {}),
    "status_529": (529, {}),
    "wait_a_moment": (429, {"Retry-After": "0.01"}),
    "wait_for_ever": (429, {"Retry-After": "1e400"}),
    "wait_until_the_past": (429, {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}),
    "wait_for_nonsense": (429, {"Retry-After": "soon"}),
    "packed_once": (200, {"Content-Encoding": "gzip"}),
    "packed_twice": (200, {"Content-Encoding": "gzip, gzip"}),
    "packed_error": (500, {"Content-Encoding": "gzip"}),
    "packed_wrongly": (200, {"Content-Encoding": "gzip"}),
}


def _mode(attack: Attack) -> Attack:
    ATTACKS[attack.__name__] = attack
    return attack


# --- usage that is missing or a lie ----------------------------------------------------------------------


@_mode
def no_usage(reply: Body) -> None:
    """Does not say how many tokens were used."""
    del reply["usage"]


@_mode
def null_usage(reply: Body) -> None:
    """Says null for the tokens used."""
    reply["usage"] = None


@_mode
def negative_usage(reply: Body) -> None:
    """Says that fewer than no tokens were used."""
    reply["usage"] = {"prompt_tokens": -1000, "completion_tokens": -1000, "total_tokens": -2000}


@_mode
def huge_usage(reply: Body) -> None:
    """Says that a billion tokens were used."""
    reply["usage"] = {"prompt_tokens": 10**9, "completion_tokens": 10**9, "total_tokens": 2 * 10**9}


@_mode
def string_usage(reply: Body) -> None:
    """Writes the tokens used as words."""
    reply["usage"] = {"prompt_tokens": "many", "completion_tokens": "few", "total_tokens": "some"}


@_mode
def fractional_usage(reply: Body) -> None:
    """Says that parts of tokens were used."""
    reply["usage"] = {"prompt_tokens": 1.5, "completion_tokens": 2.5, "total_tokens": 4.0}


# --- replies that are none -------------------------------------------------------------------------------


@_mode
def finish_reason_null(reply: Body) -> None:
    """Has text and usage, but does not say why it ended."""
    reply["choices"][0]["finish_reason"] = None


@_mode
def finish_reason_unknown(reply: Body) -> None:
    """Ended for a reason that nobody knows."""
    reply["choices"][0]["finish_reason"] = "tired"


@_mode
def empty_text(reply: Body) -> None:
    """Answers with an empty text."""
    reply["choices"][0]["message"]["content"] = ""


@_mode
def blank_text(reply: Body) -> None:
    """Answers with white space."""
    reply["choices"][0]["message"]["content"] = " \n\t "


@_mode
def null_text(reply: Body) -> None:
    """Answers with null in place of a text."""
    reply["choices"][0]["message"]["content"] = None


@_mode
def number_for_text(reply: Body) -> None:
    """Answers with a number in place of a text."""
    reply["choices"][0]["message"]["content"] = 5


@_mode
def strange_characters(reply: Body) -> None:
    """Answers with NUL, an escape sequence, a change of direction and half of a character."""
    reply["choices"][0]["message"]["content"] = "a\0b\x1b[31mc\u202ed\ud800e"


@_mode
def refusal(reply: Body) -> None:
    """Refuses to answer, in the field meant for that."""
    reply["choices"][0]["message"] = {"role": "assistant", "content": None, "refusal": "I would rather not"}


@_mode
def tool_call(reply: Body) -> None:
    """Calls a tool that nobody offered."""
    call = {"id": "1", "type": "function", "function": {"name": "rm", "arguments": "{"}}
    reply["choices"][0]["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
    reply["choices"][0]["finish_reason"] = "tool_calls"


@_mode
def no_choices(reply: Body) -> None:
    """Offers no reply among its choices."""
    reply["choices"] = []


@_mode
def null_choices(reply: Body) -> None:
    """Says null in place of choices."""
    reply["choices"] = None


@_mode
def two_choices(reply: Body) -> None:
    """Offers two replies where one was asked for."""
    other = {"index": 1, "message": {"role": "assistant", "content": "other"}, "finish_reason": "stop"}
    reply["choices"].append(other)


@_mode
def error_with_200(reply: Body) -> bytes:
    """Tells an error with the status of a success."""
    return b'{"error": {"message": "out of memory", "code": 500}}'


# --- bodies that cannot be read --------------------------------------------------------------------------


@_mode
def html(reply: Body) -> bytes:
    """Sends a page of HTML, as a proxy's login does."""
    return b"<!doctype html><title>Log in</title>"


@_mode
def html_502(reply: Body) -> bytes:
    """Sends a proxy's page of HTML with status 502."""
    return b"<html><body><h1>502 Bad Gateway</h1></body></html>"


@_mode
def wrong_json(reply: Body) -> bytes:
    """Sends JSON that ends in the middle."""
    text = json.dumps(reply).encode()
    return text[: len(text) // 2]


@_mode
def other_json(reply: Body) -> bytes:
    """Sends JSON that is a list of numbers."""
    return b"[1, 2, 3]"


@_mode
def null_json(reply: Body) -> bytes:
    """Sends the JSON null."""
    return b"null"


@_mode
def empty_body(reply: Body) -> bytes:
    """Sends nothing, with the status of a success."""
    return b""


@_mode
def duplicate_keys(reply: Body) -> bytes:
    """Says every key of the reply twice, first with another text."""
    first = json.dumps(reply | {"choices": []})
    return (first[:-1] + ", " + json.dumps(reply)[1:]).encode()


@_mode
def nested_json(reply: Body) -> bytes:
    """Sends a hundred thousand brackets."""
    return b"[" * 100_000


@_mode
def not_a_number(reply: Body) -> bytes:
    """Says NaN and Infinity where tokens are counted, which JSON does not have."""
    reply["usage"] = {"prompt_tokens": float("nan"), "completion_tokens": float("inf"), "total_tokens": 0}
    return json.dumps(reply).encode()


@_mode
def latin_1(reply: Body) -> bytes:
    """Sends bytes that are no UTF-8."""
    return json.dumps(reply).replace("reply", "r\u00e9ponse").encode("latin-1")


@_mode
def megabytes(reply: Body) -> bytes:
    """Answers with eight megabytes of text."""
    reply["choices"][0]["message"]["content"] = "word " * 1_600_000
    return json.dumps(reply).encode()


# --- bodies that are larger than they seem, or have no end -----------------------------------------------

BOMB = 256 << 20  # bytes, unpacked
BOMBS = ("packed_once", "packed_twice", "packed_error", "endless_body", "many_calls")


@functools.cache
def _packed() -> bytes:
    pack = zlib.compressobj(1, wbits=31)
    return b"".join(pack.compress(b" " * (BOMB >> 8)) for _ in range(1 << 8)) + pack.flush()


@_mode
def packed_once(reply: Body) -> bytes:
    """Packs much into a megabyte."""
    return _packed()


@_mode
def packed_twice(reply: Body) -> bytes:
    """Packs the packed once more, to a few kilobytes."""
    return gzip.compress(_packed())


@_mode
def packed_error(reply: Body) -> bytes:
    """Fails with status 500 and much packed into a megabyte."""
    return _packed()


@_mode
def packed_wrongly(reply: Body) -> bytes:
    """Sends plain JSON as if it were packed."""
    return json.dumps(reply).encode()


@_mode
def endless_body(reply: Body) -> bytes:
    """Sends a body without an end, as fast as it is read."""
    return b" " * (1 << 20)


@_mode
def many_calls(reply: Body) -> bytes:
    """Calls a million tools without a name: a client makes an object of each."""
    reply["choices"][0]["message"]["tool_calls"] = []
    return json.dumps(reply).encode().replace(b"[]", b"[" + b"{}," * 1_000_000 + b"{}]")


# --- statuses, and connections that break or stall -------------------------------------------------------


@_mode
def status_500(reply: Body) -> bytes:
    """Fails with status 500."""
    return b'{"error": {"message": "failed"}}'


@_mode
def status_529(reply: Body) -> bytes:
    """Is overloaded, with a status that no standard has."""
    return b'{"error": {"message": "overloaded"}}'


@_mode
def wait_a_moment(reply: Body) -> bytes:
    """Asks to come back in a moment, with status 429."""
    return b'{"error": {"message": "slow down"}}'


@_mode
def wait_for_ever(reply: Body) -> bytes:
    """Asks to come back after the end of time."""
    return b'{"error": {"message": "slow down"}}'


@_mode
def wait_until_the_past(reply: Body) -> bytes:
    """Asks to come back at a date that has passed."""
    return b'{"error": {"message": "slow down"}}'


@_mode
def wait_for_nonsense(reply: Body) -> bytes:
    """Asks to come back at no time that can be read."""
    return b'{"error": {"message": "slow down"}}'


@_mode
def cut_stream(reply: Body) -> bytes:
    """Announces the whole reply, sends half of it and hangs up."""
    return json.dumps(reply).encode()


@_mode
def hang(reply: Body) -> bytes:
    """Takes the request and never answers."""
    return b""


@_mode
def slow_drip(reply: Body) -> bytes:
    """Sends the reply a byte at a time: no single read takes long, the call never ends."""
    return json.dumps(reply).encode()


@_mode
def endless_headers(reply: Body) -> bytes:
    """Sends header after header, and never a body."""
    return b""


STALLING = ("hang", "slow_drip", "endless_headers")  # those that a time-out alone ends


class AttackServer(ChatServer):
    """A ChatServer whose schedule may name `ATTACKS` beside the faults of chat_server."""

    def __init__(
        self,
        reply: Callable[[str], str] = lambda prompt: f"reply to {on_one_line(prompt)}",
        faults: Schedule = lambda prompt, n: None,
    ) -> None:
        super().__init__(reply, faults, hang=3600)
        self._server.RequestHandlerClass = _attacking(self, self._server.RequestHandlerClass)


def _attacking(owner: AttackServer, base: Any) -> type[BaseHTTPRequestHandler]:
    class Handler(base):  # type: ignore[misc]
        def respond(self, body: Body, prompt: str, fault: str | None) -> bool:
            if fault not in ATTACKS:
                return bool(super().respond(body, prompt, fault))
            text = owner.reply(prompt)
            usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(text.split())}
            message = {"role": "assistant", "content": text}
            reply: Body = {
                "id": "1", "object": "chat.completion", "created": 1, "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": usage | {"total_tokens": sum(usage.values())},
            }  # fmt: skip
            data = ATTACKS[fault](reply)
            self.close_connection = True
            self.put(fault, json.dumps(reply).encode() if data is None else data)
            return False

        def put(self, fault: str, data: bytes) -> None:
            if fault == "hang":
                owner.closing.wait(owner.hang)
                return
            status, headers = HEADS.get(fault, (200, {}))
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            if fault == "endless_headers":
                self.flush_headers()
                self.trickle(b"X-More: 1\r\n" for _ in range(10**9))
                return
            if fault == "endless_body":
                self.end_headers()
                while not owner.closing.is_set():
                    self.wfile.write(data)
                return
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if fault == "cut_stream":
                self.wfile.write(data[: len(data) // 2])
            elif fault == "slow_drip":
                self.trickle(b" " for _ in range(len(data)))
            else:
                self.wfile.write(data)

        def trickle(self, pieces: Any) -> None:
            """Sends the pieces one at a time until the server is closed."""
            for piece in pieces:
                self.wfile.write(piece)
                self.wfile.flush()
                if owner.closing.wait(0.1):
                    return
                time.sleep(0)

    return Handler
