"""An embedding server on a local port in the form that OpenAI published and others speak; it misbehaves on order.

It answers POST /v1/embeddings and GET /v1/models, and keeps the bodies that it answered with vectors.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from hash_embedder import HashEmbedder

# What the n-th request (from 0) is answered instead: a status, headers and the body.
Fault = Callable[[int, Mapping[str, Any]], tuple[int, Mapping[str, str], Any] | None]


class EmbeddingServer:
    """The server; `turn` is what its model does to the vectors, `edit` what becomes of the body of a reply."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.models: list[dict[str, Any]] | None = [{"id": "m", "object": "model", "owned_by": "me"}]
        self.turn: Callable[[np.ndarray], np.ndarray] = lambda vectors: 3 * vectors
        self.edit: Callable[[dict[str, Any]], Any] = lambda body: body
        self.fault: Fault = lambda n, body: None
        self.knows_base64 = True
        self.n = 0
        self._lock = threading.Lock()

    @property
    def texts(self) -> list[str]:
        """All texts that were embedded, in the order of their requests."""
        return [text for body in self.asked for text in body["input"]]

    def answer(self, body: dict[str, Any], headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], Any]:
        with self._lock:
            n, self.n = self.n, self.n + 1
        if fault := self.fault(n, body):
            return fault
        vectors = self.turn(vectors_of(body["input"]))[:, : body.get("dimensions")].astype("<f4")
        coded = self.knows_base64 and body.get("encoding_format") == "base64"
        data = [
            {
                "object": "embedding", "index": i,
                "embedding": base64.b64encode(row.tobytes()).decode() if coded else row.tolist(),
            }
            for i, row in enumerate(vectors)
        ]  # fmt: skip
        tokens = sum(len(text.split()) for text in body["input"])
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        with self._lock:
            self.asked.append(body)
            self.headers.append(headers)
        return 200, {}, self.edit({"object": "list", "data": data[::-1], "model": body["model"], "usage": usage})


def vectors_of(texts: Sequence[str]) -> np.ndarray:
    """The unit vectors of the texts, float32 [len(texts), 64]."""
    return HashEmbedder().embed(texts)


@contextmanager
def embedding_server() -> Iterator[tuple[EmbeddingServer, str]]:
    """The server and its address, as `embedder.base_url` takes it."""
    server = EmbeddingServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            listed = self.path == "/v1/models" and server.models is not None
            self._send(200 if listed else 404, {}, {"object": "list", "data": server.models} if listed else {})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            known = self.path == "/v1/embeddings"
            self._send(*(server.answer(body, dict(self.headers)) if known else (404, {}, {"error": "no such path"})))

        def _send(self, status: int, headers: Mapping[str, str], body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None: ...

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server, f"http://127.0.0.1:{http.server_port}/v1"
    finally:
        http.shutdown()
        http.server_close()
