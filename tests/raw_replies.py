"""A server whose responses a test writes out, for the forms in which real servers reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Body = dict[str, Any]
# A request's body to the status, the body and further headers of its response; a text is sent as it is.
Respond = Callable[[Body], tuple[Any, ...]]


@contextmanager
def serving(respond: Respond) -> Iterator[tuple[str, list[Body]]]:
    """The address of a server of OpenAI's or Ollama's chats, and the bodies that it was sent."""
    bodies: list[Body] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self.answer(404, {})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/api/show":  # Ollama is asked what it serves
                self.do_GET()
                return
            bodies.append(body)
            self.answer(*respond(body))

        def answer(self, status: int, body: Any, headers: Body | None = None) -> None:
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", bodies
    finally:
        server.shutdown()
        server.server_close()


def said(content: Any, finish: str | None = "stop", error: Any = None, **message: Any) -> Body:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    return {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [choice | ({} if error is None else {"error": error})],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }  # fmt: skip


def chat(url: str, **given: Any) -> Body:
    target = {"_target_": "langchain_openai.ChatOpenAI", "model": "m", "base_url": f"{url}/v1", "max_tokens": 9}
    return {"chat": {**target, **given}, "api_key_env": "NO_KEY", "retries": 3, "backoff": 0.0, "budget": "b",
            "price": {"prompt": 1e6, "completion": 1e6}}  # fmt: skip
