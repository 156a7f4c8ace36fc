"""A server with message batches as Anthropic documents them: create, look, list, results.

POST and GET /v1/messages/batches, GET /v1/messages/batches/{id} and /v1/messages/batches/{id}/results. What happens to
requests and steps is said as to `BatchServer`.
"""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from batch_server import BatchServer


class AnthropicServer(BatchServer):
    """The server. `ends` is not used: a batch ends once all its requests have a result."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.requests: dict[str, list[dict[str, Any]]] = {}
        self._server.RequestHandlerClass = _with_message_batches(self, self._server.RequestHandlerClass)

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        requests = body["requests"]
        names = [one["custom_id"] for one in requests]
        assert len(set(names)) == len(names)
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
        assert all({"model", "max_tokens", "messages"} <= set(one["params"]) for one in requests)
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        counts = {"processing": len(requests), "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
        batch = {
            "id": f"msgbatch_{len(self.batches) + 1}", "type": "message_batch", "processing_status": "in_progress",
            "request_counts": counts, "created_at": now, "expires_at": now, "ended_at": None, "archived_at": None,
            "cancel_initiated_at": None, "results_url": None,
        }  # fmt: skip
        self.batches.append(batch)
        self.requests[batch["id"]] = requests
        self.run_at[batch["id"]] = time.monotonic() + (float("inf") if self.seconds is None else self.seconds)
        self.submitted.update(one["params"]["messages"][-1]["content"] for one in requests)
        return batch

    def look(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The batch as it is now; runs it where it is time."""
        if batch["processing_status"] == "ended" or time.monotonic() < self.run_at[batch["id"]]:
            return batch
        counts, texts = dict.fromkeys(batch["request_counts"], 0), []
        for one in self.requests[batch["id"]]:
            kind, found = self._result(one)
            counts[kind] += 1
            texts += found
        self.files[batch["id"]] = "".join(f"{text}\n" for text in reversed(texts)).encode()
        batch |= {"processing_status": "ended", "request_counts": counts, "ended_at": batch["created_at"],
                  "results_url": f"{self.url}/v1/messages/batches/{batch['id']}/results"}  # fmt: skip
        return batch

    def _result(self, request: dict[str, Any]) -> tuple[str, list[str]]:
        """How the request counts, and the lines of its results."""
        name, prompt = request["custom_id"], request["params"]["messages"][-1]["content"]
        fate = self.fate(prompt, self.calls[prompt])
        self.calls[prompt] += 1

        def line(result: dict[str, Any]) -> str:
            return json.dumps({"custom_id": name, "result": result}, ensure_ascii=False)

        if fate in ("expired", "canceled"):
            return fate, [line({"type": fate})]
        if fate is not None and fate.isdigit():
            kind = "invalid_request_error" if fate == "400" else "api_error"
            error = {"type": "error", "error": {"type": kind, "message": f"refused: {fate}"}, "request_id": "r"}
            return "errored", [line({"type": "errored", "error": error})]
        text = "" if fate == "empty" else self.reply(prompt)
        usage = {"input_tokens": len(prompt.split()), "output_tokens": len(text.split())}
        self.charged += (usage["input_tokens"] * self.price[0] + usage["output_tokens"] * self.price[1]) / 2e6
        self.whole[prompt] += 1
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": request["params"]["model"],
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": None,
            **({} if fate == "untold" else {"usage": usage}),
        }  # fmt: skip
        told = line({"type": "succeeded", "message": message})
        if fate == "strange":
            return "succeeded", [told, told.replace(name, "nobody")]
        lines = [] if fate == "missing" else [told[:-9] if fate == "broken" else told] * (1 + (fate == "twice"))
        return "succeeded", lines

    def listed(self, asked: dict[str, str]) -> dict[str, Any]:
        """A page of the batches, the newest first."""
        newest = [self.look(batch) for batch in self.batches[::-1]]
        start = [batch["id"] for batch in newest].index(asked["after_id"]) + 1 if "after_id" in asked else 0
        some = newest[start : start + int(asked.get("limit", 20))]
        return {"data": some, "first_id": some[0]["id"] if some else None,
                "last_id": some[-1]["id"] if some else None, "has_more": start + len(some) < len(newest)}  # fmt: skip


def _with_message_batches(owner: AnthropicServer, base: type[BaseHTTPRequestHandler]) -> type[BaseHTTPRequestHandler]:
    class Handler(base):  # type: ignore[valid-type, misc]
        def do_GET(self) -> None:
            path = urlsplit(self.path)
            parts = path.path.strip("/").split("/")
            assert parts[:3] == ["v1", "messages", "batches"]
            assert self.headers["anthropic-version"]
            if len(parts) == 3:
                asked = {name: values[0] for name, values in parse_qs(path.query).items()}
                self.step("list", lambda: owner.listed(asked))
            elif len(parts) == 4:
                self.step("look", lambda: next((owner.look(b) for b in owner.batches if b["id"] == parts[3]), None))
            else:
                self.step("content", lambda: owner.files.get(parts[3]))

        def do_POST(self) -> None:
            assert self.path == "/v1/messages/batches"
            assert self.headers["x-api-key"]
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.step("create", lambda: owner.create(body))

    return Handler
