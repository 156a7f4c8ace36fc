"""Calls in flight that find their number: by a clock that only waiting moves on, and at a server that refuses."""

from __future__ import annotations

import asyncio
import selectors
import time
from typing import Any

import pytest

from chat_server import ChatServer
from patched import instead_of
from ragauge.contract.errors import ConfigError
from ragauge.llms import pace
from ragauge.llms.chat import ChatLLM
from ragauge.llms.pace import Pace, most_in_flight
from ragauge.store import Store


class Clock(selectors.SelectSelector):
    """A clock that stands still while anything is done, and leaps over every wait."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return super().select(0)


def served(limits: Pace, monkeypatch: pytest.MonkeyPatch, n: int, slots: int, refuses_above: int = 10**6) -> int:
    """Asks n calls of a server with so many slots, 200 ms each; the number of calls that it refused."""
    clock = Clock()
    loop = asyncio.SelectorEventLoop(clock)
    monkeypatch.setattr(loop, "time", lambda: clock.now)
    monkeypatch.setattr(pace, "time", instead_of(time, monotonic=lambda: clock.now))
    free, in_flight, refused = asyncio.Semaphore(slots), 0, 0

    async def call() -> None:
        nonlocal in_flight, refused
        await limits.enter()
        while True:
            began = clock.now
            in_flight += 1
            refuses = in_flight > refuses_above
            if not refuses:
                async with free:
                    await asyncio.sleep(0.2)
            in_flight -= 1
            if not refuses:
                break
            refused += 1
            limits.refused(began)
            await asyncio.sleep(0.1)
        limits.answered()
        limits.leave()

    async def all_calls() -> None:
        await asyncio.gather(*(call() for _ in range(n)))

    loop.run_until_complete(all_calls())
    loop.close()
    return refused


def test_a_number_in_flight_doubles_while_it_brings_more_calls_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Pace(256)
    assert limits.allowed == 4
    served(limits, monkeypatch, 60, slots=20)
    assert limits.allowed == 16  # after 8 answers of 4 at once and 16 of 8
    # 20 slots answer 100 a second: 16 bring 80, 32 all of them, 64 no more.
    served(limits, monkeypatch, 1000, slots=20)
    assert limits.allowed == 32
    served(limits, monkeypatch, 1000, slots=20)
    assert limits.allowed == 32
    most = Pace(64)
    served(most, monkeypatch, 2000, slots=10**6)
    assert most.allowed == 64


def test_a_refusal_halves_the_number_and_then_it_grows_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Pace(256)
    refused = served(limits, monkeypatch, 1000, slots=10**6, refuses_above=10)
    assert 5 <= limits.allowed <= 11
    assert 0 < refused < 50


def test_a_server_that_refuses_is_asked_for_less_at_once_and_answers_everything(store: Store) -> None:
    crowds = []

    def crowded(prompt: str, n: int) -> str | None:
        crowds.append(server.in_flight)
        return "429" if server.in_flight > 2 else None

    with ChatServer(delay=0.3, faults=crowded) as server:
        chat = {"_target_": "langchain_ollama.ChatOllama", "model": "m", "base_url": server.url}
        llm = ChatLLM(chat=chat, concurrency="auto", backoff=0.05, retries=9)
        prompts = [f"prompt {i}" for i in range(30)]
        assert [reply.text for reply in llm.ask(prompts, store, "answers")] == [f"reply to {p}" for p in prompts]
        assert set(server.whole.values()) == {1}
    assert 0 < sum(crowd > 2 for crowd in crowds) < 10


def test_auto_knows_servers_of_ones_own_by_their_address() -> None:
    ollama, openai = "langchain_ollama.ChatOllama", "langchain_openai.ChatOpenAI"
    own = [
        "http://localhost:8000/v1",
        "http://127.0.0.1:1",
        "http://10.0.0.7/v1",
        "http://[::1]:8000",
        "http://192.168.1.2",
    ]
    assert [most_in_flight({"_target_": openai, "base_url": url}) for url in own] == [256] * 5
    assert most_in_flight({"_target_": ollama}) == 256
    assert most_in_flight({"_target_": openai}) == 64
    assert most_in_flight({"_target_": openai, "base_url": "https://api.example.org/v1"}) == 64
    with pytest.raises(ConfigError, match="concurrency: 'many' is not an integer from 1 to 10,000, and not auto"):
        ChatLLM(chat={"_target_": openai, "model": "m"}, concurrency="many")
