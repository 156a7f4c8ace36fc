"""A RAG service on a local port: answers /ask, counts what it is asked, and misbehaves on order.

A fault is a status ("500"), one of chat_server's ("reset", "hang", "drip"), or a name in `RESPONSES`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from chat_server import ChatServer, Schedule

Body = dict[str, Any]
_LONG = b'{"answer": "' + b"word " * 20_000_000 + b'"}'

# What comes with status 200 in the place of an answer, and what an error says of it.
RESPONSES: dict[str, tuple[bytes, str]] = {
    "html": (
        b"<!doctype html>\n<title>Log in</title>", "no JSON but text/html; it begins '<!doctype html> <title>"
    ),
    "empty_body": (b"", "no JSON.*begins with nothing"),
    "half_json": (b'{"answer": "Anna", "con', "no JSON"),
    "latin_1": ('{"answer": "Zürich", "contexts": []}'.encode("latin-1"), "no JSON"),
    "nested_json": (b"[" * 100_000, "no JSON"),
    "null_json": (b"null", "response.answer='answer' finds nothing in null"),
    "a_list": (b"[1, 2, 3]", r"response.answer='answer' finds nothing in \[1, 2, 3\]"),
    "error_object": (
        b'{"error": {"message": "out of memory"}}',
        "response.answer='answer' finds nothing in {\"error\": {\"message\": \"out of memory\"}}",
    ),
    "other_name": (b'{"result": "Anna", "contexts": []}', "response.answer='answer' finds nothing"),
    "null_answer": (b'{"answer": null, "contexts": []}', "response.answer='answer' finds nothing"),
    "number_answer": (b'{"answer": 5, "contexts": []}', "response.answer='answer' is no text: 5"),
    "blank_answer": (b'{"answer": " ", "contexts": []}', "response.answer='answer' is an empty text"),
    "invisible_answer": (
        b'{"answer": "\\u200b\\ufeff ", "contexts": []}', "response.answer='answer' is an empty text",
    ),
    "no_contexts": (b'{"answer": "Anna"}', "response.contexts='contexts' finds nothing"),
    "text_for_contexts": (b'{"answer": "Anna", "contexts": "Anna."}', "'contexts' is no list: \"Anna.\""),
    "object_for_contexts": (b'{"answer": "Anna", "contexts": {"a": 1}}', "'contexts' is no list"),
    "numbers_for_contexts": (b'{"answer": "Anna", "contexts": [1]}', r"contexts\[0\] is neither .*: 1"),
    "context_without_text": (
        b'{"answer": "Anna", "contexts": [{"id": "a"}]}',
        r"response.text='text' finds nothing in contexts\[0\], {\"id\": \"a\"}",
    ),
    "nan_score": (
        b'{"answer": "Anna", "contexts": [{"text": "Anna.", "score": NaN}]}',
        r"response.score='score' of contexts\[0\] is no finite number: NaN",
    ),
    "text_score": (
        b'{"answer": "Anna", "contexts": [{"text": "Anna.", "score": "high"}]}',
        "is no finite number: \"high\"",
    ),
    "hundred_megabytes": (_LONG, "longer than 16 MiB"),
    "packed_megabytes": (gzip.compress(_LONG, 1), "longer than 16 MiB"),
}  # fmt: skip


def rag(body: Body) -> Any:
    """An answer with two contexts, and its usage."""
    question = body["question"]
    return {
        "answer": f"answer to {question}",
        "contexts": [{"text": f"first of {question}", "score": 2.0}, {"text": "second", "score": 1.0}],
        "usage": {"input": 10, "output": 5},
        "cost": 0.25,
    }


class ServiceServer(ChatServer):
    """A ChatServer that is a service: `answer` makes the JSON of a request; faults go by its question."""

    def __init__(
        self,
        answer: Callable[[Body], Any] = rag,
        faults: Schedule = lambda question, n: None,
        **others: Any,
    ) -> None:
        super().__init__(faults=faults, **others)
        self.answer = answer
        self.address = f"{self.url}/ask"
        self._server.RequestHandlerClass = _serving(self, self._server.RequestHandlerClass)

    def begin(self, body: Body, headers: dict[str, str]) -> tuple[str, str | None]:
        """As of a chat server: its question is the prompt."""
        return super().begin({**body, "messages": [{"content": str(body.get("question"))}]}, headers)


def _serving(owner: ServiceServer, base: Any) -> type[BaseHTTPRequestHandler]:
    class Handler(base):  # type: ignore[misc]
        def do_GET(self) -> None:
            body = dict(parse_qsl(urlsplit(self.path).query))
            question, _ = owner.begin(body, dict(self.headers))
            self.send(200, json.dumps(owner.answer(body)).encode(), {})
            owner.end(question, whole=True)

        def respond(self, body: Body, question: str, fault: str | None) -> bool:
            self.close_connection = fault is not None
            if fault == "drip":
                self.drip(b" " * 1000)
                return False
            if fault == "away":
                self.send(307, b"", {"Location": f"{owner.url}/elsewhere"})
                return False
            if fault == "packed":
                data = gzip.compress(json.dumps(owner.answer(body)).encode())
                self.send(200, data, {"Content-Encoding": "gzip"})
                return True
            if fault in RESPONSES:
                packed = {"Content-Encoding": "gzip"} if fault == "packed_megabytes" else {}
                kind = {"Content-Type": "text/html; charset=utf-8"} if fault == "html" else {}
                self.send(200, RESPONSES[fault][0], {**packed, **kind})
                return False
            if fault is not None:
                return bool(super().respond(body, question, fault))
            said = owner.answer(body)
            self.send(200, said if isinstance(said, bytes) else json.dumps(said).encode(), {})
            return True

    return Handler
