"""Anthropic's client, and a server that keeps what requests mark and bills by Anthropic's published rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from ragauge.answering.chat import ChatGenerator
from ragauge.store import Store
from raw_replies import Body, serving

pytest.importorskip("langchain_anthropic")

PRICE = {"prompt": 3, "cached": 0.3, "written": 3.75, "completion": 15}
LEAST, LOOKS_BACK, MARKS = 1024, 20, 4  # tokens of a beginning that is kept; blocks; marks of a request
# Ten questions at five budgets, whose contexts are prefixes of one another. A token is a word.
PROMPTS = {
    (question, n): " ".join(["rules"] * 50 + [f"q{question}w{i}" for i in range(n)]) + "\nAnswer:"
    for question in range(10)
    for n in (300, 1000, 1100, 1500, 2100)
}


@dataclass
class Provider:
    """Keeps beginnings of messages by their blocks, and sums its bills in US dollars."""

    kept: set[tuple[str, ...]] = field(default_factory=set)
    bill: float = 0.0
    computed: int = 0

    def reply(self, body: Body) -> tuple[Any, ...]:
        content = body["messages"][0]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        assert all(block["text"].strip() for block in blocks)
        texts = [block["text"] for block in blocks]
        marks = [i + 1 for i, block in enumerate(blocks) if "cache_control" in block]
        assert len(marks) <= MARKS
        sizes = [len("".join(texts[:i]).split()) for i in range(len(texts) + 1)]
        looked = {i for mark in marks for i in range(max(1, mark - LOOKS_BACK), mark + 1)}
        found = max((i for i in looked if tuple(texts[:i]) in self.kept), default=0)
        wrote = [mark for mark in marks if mark > found and sizes[mark] >= LEAST]
        self.kept |= {tuple(texts[:mark]) for mark in wrote}
        read, written = sizes[found], sizes[max(wrote, default=found)] - sizes[found]
        rest = sizes[-1] - read - written
        self.computed += rest + written
        self.bill += (3 * rest + 0.3 * read + 3.75 * written + 15 * 2) / 1e6
        usage = {
            "input_tokens": rest, "output_tokens": 2, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
        }  # fmt: skip
        said = [{"type": "text", "text": f"It is {sizes[-1]}."}]
        about = {"id": "1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
        return 200, {**about, "content": said, "stop_reason": "end_turn", "usage": usage}


def test_a_row_of_budgets_costs_what_the_server_bills_and_a_fraction_of_plain_prompts(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "k")
    provider = Provider()
    with serving(provider.reply) as (url, bodies):
        chat = {"_target_": "langchain_anthropic.ChatAnthropic", "model": "m", "base_url": url, "max_tokens": 10}
        llm = ChatGenerator(chat=chat, price=PRICE, api_key_env="SOME_KEY", budget="b", retries=0)
        replies = llm.ask(list(PROMPTS.values()), store, "answers", topics=[str(question) for question, _ in PROMPTS])
    words = [len(prompt.split()) for prompt in PROMPTS.values()]
    assert [reply.text for reply in replies] == [f"It is {n}." for n in words]  # the prompts are whole
    assert len(bodies) == len(PROMPTS)
    assert llm.spent(store) == pytest.approx(provider.bill, abs=1e-9)
    # By hand: from 1,050 tokens on each slice is written once: 1,051 (of 1,101), 100, 400, and the last 600 are sent.
    assert provider.computed == 10 * (351 + 1050 + 1 + 100 + 1 + 400 + 1 + 600 + 1)
    plain = sum(3 * n + 15 * 2 for n in words) / 1e6
    print(f"{provider.bill / plain:.3f} of the price of plain prompts, {provider.computed / sum(words):.3f} computed")
    assert provider.bill < 0.55 * plain
