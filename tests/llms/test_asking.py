"""Asking for JSON: each distinct prompt once, the unreadable once more, the rest counted as what it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ragauge.contract.component import ChatModel
from ragauge.contract.replies import Reply
from ragauge.llms.json_replies import Found, ask_all, json_of
from ragauge.llms.replies import CUT


class Scripted(ChatModel):
    """Replies by prompt and salt."""

    def __init__(self, replies: dict[tuple[str, str], Reply]) -> None:
        self.replies = replies
        self.asked: list[tuple[str, str]] = []

    def ask(self, prompts: Sequence[str], store: object, what: str, readers: Any = ()) -> list[Reply]:
        found = []
        for prompt, read in zip(prompts, readers, strict=True):
            self.asked.append((prompt, ""))
            found.append(self.replies[prompt, ""])
            if found[-1].text is not None and read(found[-1]) is None:
                self.asked.append((prompt, "once more"))
                found[-1] = self.replies[prompt, "once more"]
        return found


def test_equal_prompts_are_one_request_and_what_cannot_be_read_is_asked_for_once_more() -> None:
    chat = Scripted(
        {
            ("a", ""): Reply("1"),
            ("b", ""): Reply("one"),
            ("b", "once more"): Reply("2"),
            ("c", ""): Reply("3", error=CUT),
            ("c", "once more"): Reply("three"),
            ("d", ""): Reply(None, error="HTTP 500"),
        }
    )
    store = SimpleNamespace(root=Path())
    found = ask_all(chat, ["a", "b", "a", "c", "d"], lambda text: int(text) if text.isdigit() else None,
                    store, "numbers")  # fmt: skip
    assert found == [
        Found(1, "ok"),
        Found(2, "ok"),
        Found(1, "ok"),
        Found(None, "unreadable", "three"),
        Found(None, "failed", "HTTP 500"),
    ]
    assert chat.asked == [("a", ""), ("b", ""), ("b", "once more"), ("c", ""), ("c", "once more"), ("d", "")]


def test_json_is_the_reply_or_the_one_object_in_it_and_repeats_no_key() -> None:
    assert json_of(' {"a": [1, 2]} ') == {"a": [1, 2]}
    assert json_of('```json\n[{"a": 1}]\n```') == [{"a": 1}]
    assert json_of('Here: {"a": 1}') == {"a": 1}
    assert json_of('{"a": 1} or {"a": 2}') is None
    assert json_of('{"a": {"b": 1}, "c": {"d"') is None  # cut
    assert json_of('{"a": 1, "a": 2}') is None
    assert json_of("[" * 100_000) is None
