"""A chat server that takes batches, too, as OpenAI documents its files and batches API.

POST /v1/files (multipart), GET /v1/files/{id}/content, POST and GET /v1/batches, GET /v1/batches/{id}. A batch runs
once, when `seconds` have passed: its requests are answered and charged then, and never again.
"""

from __future__ import annotations

import contextlib
import email.parser
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from chat_server import ChatServer, on_one_line

# What happens to a request of a batch, by its prompt and how often it was in a batch before: None (a reply), a status
# such as "500", "expired", "cancelled", "empty", "untold" (no usage), "twice", "broken" (no JSON), "missing" (no line).
Fate = Callable[[str, int], str | None]


@dataclass(frozen=True)
class Endless:
    """A body that is sent piece by piece, for ever if the pieces go on so."""

    pieces: Callable[[], Iterator[bytes]]
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200


class BatchServer(ChatServer):
    """The server; a context manager as ChatServer is.

    seconds: until a batch ends; None until `finish` is called.   ends: status of a batch by its number (from 0).
    fate: what happens to a request.   lose: how many answers of the step ("upload", "create", "look", "content",
    "list") get lost after it was done; refuse: how many times a step is refused with this status before it is done.
    odd: what is sent by a step, once it is done, in the place of its answer: JSON, bytes, or `Endless`.
    price: US dollars per million tokens, half of which `charged` sums up.
    """

    def __init__(
        self,
        reply: Callable[[str], str] = lambda prompt: f"reply to {on_one_line(prompt)}",
        seconds: float | None = 0.0,
        ends: Callable[[int], str] = lambda number: "completed",
        fate: Fate = lambda prompt, n: None,
        price: tuple[float, float] = (1.0, 2.0),
        **more: Any,
    ) -> None:
        super().__init__(reply, **more)
        self.seconds, self.ends, self.fate, self.price = seconds, ends, fate, price
        self.lose: Counter[str] = Counter()
        self.refuse: dict[str, list[int]] = {}
        self.odd: dict[str, Callable[[Any], Any]] = {}
        self.files: dict[str, bytes] = {}
        self.batches: list[dict[str, Any]] = []
        self.run_at: dict[str, float] = {}
        self.submitted: Counter[str] = Counter()  # requests in batches that were created, by prompt
        self.charged = 0.0
        self.steps: Counter[str] = Counter()
        self.batch_lock = threading.Lock()
        self._server.RequestHandlerClass = _with_batches(self, self._server.RequestHandlerClass)

    def finish(self) -> None:
        """Ends all batches."""
        with self.batch_lock:
            self.run_at = dict.fromkeys(self.run_at, 0.0)

    def upload(self, content: bytes) -> dict[str, Any]:
        name = f"file-{len(self.files) + 1}"
        self.files[name] = content
        return {"id": name, "object": "file", "bytes": len(content), "created_at": int(time.time()),
                "filename": f"{name}.jsonl", "purpose": "batch", "status": "processed"}  # fmt: skip

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        assert (body["endpoint"], body["completion_window"]) == ("/v1/chat/completions", "24h")
        assert len({line["custom_id"] for line in lines}) == len(lines)
        assert all(line["url"] == body["endpoint"] and line["method"] == "POST" for line in lines)
        batch = {
            "id": f"batch_{len(self.batches) + 1}", "object": "batch", "endpoint": body["endpoint"], "errors": None,
            "input_file_id": body["input_file_id"], "completion_window": "24h", "status": "validating",
            "output_file_id": None, "error_file_id": None, "created_at": int(time.time()),
            "request_counts": {"total": 0, "completed": 0, "failed": 0}, "metadata": body.get("metadata"),
        }  # fmt: skip
        self.batches.append(batch)
        self.run_at[batch["id"]] = time.monotonic() + (float("inf") if self.seconds is None else self.seconds)
        self.submitted.update(line["body"]["messages"][-1]["content"] for line in lines)
        return batch

    def look(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The batch as it is now; runs it where it is time."""
        if batch["status"] not in ("validating", "in_progress", "finalizing"):
            return batch
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        if time.monotonic() < self.run_at[batch["id"]]:
            batch["status"] = "in_progress"
            batch["request_counts"]["total"] = len(lines)
            return batch
        batch["status"] = self.ends(self.batches.index(batch))
        if batch["status"] == "failed":
            error = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached", "line": None}
            batch["errors"] = {"object": "list", "data": [error]}
            return batch
        written: dict[str, list[str]] = {"output_file_id": [], "error_file_id": []}
        for line in lines:
            for file, text in self._answered(line):
                written[file].append(text)
        for file, texts in written.items():
            if texts:
                batch[file] = self.upload("".join(f"{text}\n" for text in texts).encode())["id"]
        good = len(written["output_file_id"])
        batch["request_counts"] = {"total": len(lines), "completed": good, "failed": len(lines) - good}
        return batch

    def _answered(self, line: dict[str, Any]) -> list[tuple[str, str]]:
        prompt = line["body"]["messages"][-1]["content"]
        fate = self.fate(prompt, self.calls[prompt])
        self.calls[prompt] += 1
        about = {"id": f"batch_req_{sum(self.calls.values())}", "custom_id": line["custom_id"]}
        if fate in ("expired", "cancelled"):
            error = {"code": f"batch_{fate}", "message": "This request could not be executed"}
            return [("error_file_id", json.dumps({**about, "response": None, "error": error}))]
        if fate is not None and fate.isdigit():
            answer = {"status_code": int(fate), "request_id": "r", "body": {"error": {"message": f"refused: {fate}"}}}
            return [("error_file_id", json.dumps({**about, "response": answer, "error": None}))]
        text = "" if fate == "empty" else self.reply(prompt)
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(text.split())}
        usage["total_tokens"] = sum(usage.values())
        self.charged += (usage["prompt_tokens"] * self.price[0] + usage["completion_tokens"] * self.price[1]) / 2e6
        self.whole[prompt] += 1
        if fate == "missing":
            return []
        body = {
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": line["body"]["model"],
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            **({} if fate == "untold" else {"usage": usage}),
        }  # fmt: skip
        answer = {"status_code": 200, "request_id": "r", "body": body}
        told = json.dumps({**about, "response": answer, "error": None}, ensure_ascii=False)
        if fate == "strange":
            return [("output_file_id", told), ("output_file_id", told.replace(line["custom_id"], "nobody"))]
        return [("output_file_id", told[:-9] if fate == "broken" else told)] * (2 if fate == "twice" else 1)


def _with_batches(owner: BatchServer, base: type[BaseHTTPRequestHandler]) -> type[BaseHTTPRequestHandler]:
    class Handler(base):  # type: ignore[valid-type, misc]
        def do_GET(self) -> None:
            path = urlsplit(self.path)
            parts = path.path.strip("/").split("/")[1:]
            if parts[0] == "batches" and len(parts) == 1:
                asked = {name: values[0] for name, values in parse_qs(path.query).items()}
                self.step("list", lambda: owned_list(asked))
            elif parts[0] == "batches":
                self.step("look", lambda: next((owner.look(b) for b in owner.batches if b["id"] == parts[1]), None))
            elif parts[0] == "files":
                self.step("content", lambda: owner.files.get(parts[1]))
            else:
                super().do_GET()

        def do_POST(self) -> None:
            if self.path == "/v1/files":
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
                parts: Any = email.parser.BytesParser().parsebytes(head + raw).get_payload()
                by_name = {part.get_param("name", header="content-disposition"): part for part in parts}
                assert by_name["purpose"].get_payload() == "batch"
                self.step("upload", lambda: owner.upload(by_name["file"].get_payload(decode=True)))
            elif self.path == "/v1/batches":
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.step("create", lambda: owner.create(body))
            else:
                super().do_POST()

        def step(self, name: str, work: Callable[[], Any]) -> None:
            with owner.batch_lock:
                owner.steps[name] += 1
                if owner.refuse.get(name):
                    status = owner.refuse[name].pop(0)
                    self.send(status, json.dumps({"error": {"message": f"refused with {status}"}}).encode(), {})
                    return
                done = work()
                if owner.lose[name] > 0:
                    owner.lose[name] -= 1
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
                    self.close_connection = True
                    return
                if name in owner.odd and done is not None:
                    done = owner.odd[name](done)
                if isinstance(done, Endless):
                    data = b""
                else:
                    data = done if isinstance(done, bytes) else json.dumps(done).encode()
            if isinstance(done, Endless):
                self.stream(done)
            elif done is None:
                self.send(404, json.dumps({"error": {"message": "No such batch or file"}}).encode(), {})
            else:
                self.send(200, data, {})

        def stream(self, endless: Endless) -> None:
            self.send_response(endless.status)
            for header, value in {"Transfer-Encoding": "chunked", **endless.headers}.items():
                self.send_header(header, value)
            self.end_headers()
            self.close_connection = True
            with contextlib.suppress(OSError):
                for piece in endless.pieces():
                    self.wfile.write(b"%x\r\n" % len(piece) + piece + b"\r\n")
                    self.wfile.flush()
                    if owner.closing.is_set():
                        return
                self.wfile.write(b"0\r\n\r\n")

    def owned_list(asked: dict[str, str]) -> dict[str, Any]:
        newest = owner.batches[::-1]
        ids = [batch["id"] for batch in newest]
        start = ids.index(asked["after"]) + 1 if "after" in asked else 0
        some = newest[start : start + int(asked.get("limit", 20))]
        return {"object": "list", "data": some, "first_id": some[0]["id"] if some else None,
                "last_id": some[-1]["id"] if some else None, "has_more": start + len(some) < len(newest)}  # fmt: skip

    return Handler
