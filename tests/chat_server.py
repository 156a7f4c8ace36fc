"""A chat server on a local port that speaks Ollama's and OpenAI's protocol, and misbehaves on order.

It answers POST /api/chat (newline-delimited JSON, streamed) and POST /v1/chat/completions, and counts the
replies that it gave whole per distinct request. What it serves it tells at GET /v1/models, GET /api/tags and
POST /api/show, if it is told what to say.
"""

from __future__ import annotations

import hashlib
import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from scripted_chat import unframed

QUICK_FAULTS = ("429", "500", "reset", "cut", "empty")  # those that no time-out need end
FAULTS = (*QUICK_FAULTS, "hang")

# What goes wrong with the n-th call of a prompt (from 0), or None.
Schedule = Callable[[str, int], str | None]

UNTOLD = object()  # a reply without any usage
# The usage of the n-th call of a prompt (from 0), from the honest one {prompt_tokens, completion_tokens}.
Usage = Callable[[str, int, dict[str, Any]], Any]


class Logged(NamedTuple):
    """One line of the server's log: a request was `received`, or `answered` whole."""

    number: int
    event: str
    digest: str


def on_one_line(prompt: str) -> str:
    """The prompt without the marks of its frames and its line ends: a reply that repeats it whole would be an echo."""
    return " ".join(unframed(prompt).split())


COMPLAINT = "\n\nYour last reply to this could not be read: "


def first_of(prompt: str) -> str:
    """The prompt without the line that says why the reply before could not be read."""
    return prompt.partition(COMPLAINT)[0]


def digest_of(prompt: str) -> str:
    """What a request is known by in the log: SHA-256 of the prompt, all that differs between requests."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()


def faults_at(share: float, seed: int, faults: tuple[str, ...] = FAULTS) -> Schedule:
    """A schedule in which every call goes wrong with this probability, the same for the same seed."""

    def schedule(prompt: str, n: int) -> str | None:
        dice = random.Random(f"{seed}/{prompt}/{n}")
        return dice.choice(faults) if dice.random() < share else None

    return schedule


class ChatServer:
    """The server, in threads of its own; use it as a context manager.

    reply: a prompt to the text of its reply.   faults: what goes wrong when.   delay: seconds per reply.
    retry_after: value of the Retry-After header of a 429.   hang: seconds that a hanging call takes at most.
    usage: what the server says of its tokens: anything, or UNTOLD.
    about: what is said of the models, by path; bytes as they are, a number as a status, "hang", "drip" or
    "away" (a redirection) as what goes wrong; a path that is not in it is answered with 404.
    away: the address that a fault such as "307" sends the client to; by default the one that it asked.
    port: 0 for a free one; that of a server before, which so comes back.
    """

    def __init__(
        self,
        reply: Callable[[str], str] = lambda prompt: f"reply to {on_one_line(prompt)}",
        faults: Schedule = lambda prompt, n: None,
        delay: float = 0.0,
        retry_after: str = "0.05",
        hang: float = 5.0,
        usage: Usage = lambda prompt, n, honest: honest,
        about: dict[str, Any] | None = None,
        away: str | None = None,
        port: int = 0,
    ) -> None:
        self.about, self.away = about or {}, away
        self.asked_about: list[tuple[str, dict[str, str]]] = []
        self.reply, self.faults, self.delay = reply, faults, delay
        self.retry_after, self.hang, self.usage = retry_after, hang, usage
        self.closing = threading.Event()  # ends what hangs or drips
        self.whole: Counter[str] = Counter()  # replies given whole, by prompt
        self.calls: Counter[str] = Counter()  # all calls, by prompt
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.log: list[Logged] = []
        self.in_flight = 0
        self.refuses = ""  # a key of a request that is refused because of it
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> ChatServer:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def begin(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[str, str | None]:
        prompt = body["messages"][-1]["content"]
        with self._lock:
            fault = self.faults(prompt, self.calls[prompt])
            self.calls[prompt] += 1
            self.bodies.append(body)
            self.headers.append(headers)
            self.times.append(time.monotonic())
            self.log.append(Logged(len(self.log), "received", digest_of(prompt)))
            self.in_flight += 1
        return prompt, fault

    def told(self, prompt: str, text: str) -> Any:
        """What the server says of the tokens of the prompt's latest call."""
        honest = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(text.split())}
        return self.usage(prompt, self.calls[prompt] - 1, honest)

    def end(self, prompt: str, whole: bool) -> None:
        with self._lock:
            self.in_flight -= 1
            self.whole[prompt] += whole
            if whole:
                self.log.append(Logged(len(self.log), "answered", digest_of(prompt)))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests are about."""


def _handler(owner: ChatServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            owner.asked_about.append((self.path, dict(self.headers)))
            said = owner.about.get(self.path, 404)
            try:
                if said == "hang":
                    owner.closing.wait(owner.hang)
                    self.close_connection = True
                elif said == "drip":
                    self.drip(b" " * 400)
                elif said == "away":
                    self.send(302, b"", {"Location": owner.about["away"]})
                elif isinstance(said, int):
                    self.send(said, json.dumps({"error": str(self.headers)}).encode(), {})
                else:
                    self.send(200, said if isinstance(said, bytes) else json.dumps(said).encode(), {})
            except OSError:
                pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/api/show":
                self.do_GET()
                return
            prompt, fault = owner.begin(body, dict(self.headers))
            fault = "400" if owner.refuses in body else fault
            whole = False
            try:
                time.sleep(owner.delay)
                whole = self.respond(body, prompt, fault)
                self.wfile.flush()
            except OSError:
                whole = False
            finally:
                owner.end(prompt, whole)

        def respond(self, body: dict[str, Any], prompt: str, fault: str | None) -> bool:
            if fault is not None and fault.isdigit():
                self.refuse(int(fault))
                return False
            if fault == "reset":
                # Linger of 0: the client sees a reset connection, not an end.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True
                return False
            if fault == "hang":
                owner.closing.wait(owner.hang)
                self.close_connection = True
                return False
            if self.path == "/api/chat":
                return self.ollama(body, prompt, fault)
            if self.path == "/v1/chat/completions":
                return self.openai(body, prompt, fault)
            self.refuse(404)
            return False

        def refuse(self, status: int) -> None:
            message = f"refused with {status}; you sent {self.headers.get('Authorization')} {owner.refuses}".strip()
            error: Any = message if self.path == "/api/chat" else {"message": message, "code": str(status)}
            headers = {"Retry-After": owner.retry_after} if status == 429 else {}
            if 300 <= status < 400:
                headers["Location"] = owner.away or self.path
            self.send(status, json.dumps({"error": error}).encode(), headers)

        def send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def openai(self, body: dict[str, Any], prompt: str, fault: str | None) -> bool:
            text = owner.reply(prompt)
            choice = {
                "index": 0,
                "message": {"role": "assistant", "content": None if fault == "none" else text},
                "finish_reason": {"length": "length", "unfinished": None}.get(str(fault), "stop"),
            }
            usage = owner.told(prompt, text)
            data = json.dumps(
                {
                    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"],
                    "choices": [] if fault == "empty" else [choice],
                    **({} if usage is UNTOLD else {"usage": usage}),
                }
            ).encode()  # fmt: skip
            if fault == "cut":
                data = data[: len(data) // 2]
            if fault == "drip":
                self.drip(data)
                return False
            self.send(200, data, {})
            return fault in (None, "length")

        def drip(self, data: bytes) -> None:
            """A byte now and then: no single read takes long, the call never ends."""
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            for _ in data:
                self.wfile.write(b" ")
                self.wfile.flush()
                if owner.closing.wait(0.1):
                    return

        def ollama(self, body: dict[str, Any], prompt: str, fault: str | None) -> bool:
            text = "" if fault in ("empty", "none") else owner.reply(prompt)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-ndjson")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            about = {"model": body["model"], "created_at": "2024-01-01T00:00:00Z"}
            half = len(text) // 2
            for piece in (text[:half], text[half:]):
                message = {"role": "assistant", "content": piece}
                self.chunk({**about, "message": message, "done": False})
                if fault == "cut":
                    self.wfile.write(b"0\r\n\r\n")  # a clean end of the stream, without the last line
                    return False
            usage = owner.told(prompt, text)
            usage = usage if isinstance(usage, dict) else {}
            counts = {"prompt_eval_count": "prompt_tokens", "eval_count": "completion_tokens"}
            reason = {} if fault == "unfinished" else {"done_reason": "length" if fault == "length" else "stop"}
            self.chunk(
                {
                    **about, **reason, "message": {"role": "assistant", "content": ""}, "done": True,
                    "total_duration": 1, **{n: usage[of] for n, of in counts.items() if of in usage},
                }
            )  # fmt: skip
            self.wfile.write(b"0\r\n\r\n")
            return fault in (None, "length")

        def chunk(self, value: dict[str, Any]) -> None:
            data = json.dumps(value).encode() + b"\n"
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

    return Handler
