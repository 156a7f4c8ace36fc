"""Calls by Anthropic's message batches, which keep no name of ours: still each is sent and charged once."""

from __future__ import annotations

import importlib.util
import re
import sqlite3
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import stand_in_anthropic
from anthropic_server import AnthropicServer
from dying import Killed, dying
from ragauge.contract.errors import ConfigError, MissingError, WaitingError
from ragauge.llms.chat import ChatLLM
from ragauge.plugins.batches import table
from ragauge.plugins.batches.anthropic_api import AnthropicBatches
from ragauge.store import Store

PRICE = {"prompt": 1.0, "completion": 2.0}
PROMPTS = [f"question number {i}" for i in range(7)]
REPLIES = [f"reply to {prompt}" for prompt in PROMPTS]


def model(server: AnthropicServer, **more: Any) -> ChatLLM:
    chat = {"_target_": "langchain_anthropic.ChatAnthropic", "model": "m", "base_url": server.url, "max_tokens": 100}
    given = {"submit": "batch", "submit_poll": 0.01, "timeout": 0.7, "backoff": 0.01, "retries": 9, "price": PRICE,
             "api_key_env": "BATCH_TEST_KEY", "budget": "b", **more}  # fmt: skip
    return ChatLLM(chat, **given)


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real package where it is installed."""
    monkeypatch.setenv("BATCH_TEST_KEY", "unused")
    if importlib.util.find_spec("langchain_anthropic") is None:
        monkeypatch.setitem(sys.modules, "langchain_anthropic", stand_in_anthropic)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def texts(llm: ChatLLM, store: Store, prompts: list[str] = PROMPTS) -> list[str | None]:
    return [reply.text for reply in llm.ask(prompts, store, "answers")]


def open_rows(store: Store) -> tuple[int, int]:
    with sqlite3.connect(store.root / "ledger.db") as ledger:
        tables = ("batches", "claims WHERE batch <> ''")
        counts = [ledger.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables]
    return counts[0], counts[1]


def test_a_stage_is_one_batch_at_half_the_price_and_is_paid_once(store: Store) -> None:
    with AnthropicServer() as server:
        llm = model(server)
        found = llm.ask([*PROMPTS, PROMPTS[0]], store, "answers")
        assert texts(llm, store) == REPLIES
    assert server.steps == Counter(create=1, look=1, content=1)
    assert [reply.text for reply in found] == [*REPLIES, REPLIES[0]]
    assert (found[0].usage.prompt_tokens, found[0].usage.completion_tokens) == (3, 5)
    assert found[0].usage.cost_usd == pytest.approx((3 * 1.0 + 5 * 2.0) / 2e6)
    assert llm.spent(store) == pytest.approx(server.charged)
    assert open_rows(store) == (0, 0)


STEPS: list[tuple[Any, str]] = [
    (table, "enter"), (table, "mark"), (AnthropicBatches, "create"), (AnthropicBatches, "look"),
    (AnthropicBatches, "downloaded"), (table, "settle"), (table, "close"),
]  # fmt: skip


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize(("place", "name"), STEPS, ids=lambda step: step if isinstance(step, str) else "")
def test_a_kill_at_any_step_sends_nothing_twice_and_loses_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, nth: int, when: str
) -> None:
    calls: list[str] = []
    dies = dying(getattr(place, name), nth, when, calls)
    monkeypatch.setattr(table, "AT_ONCE", 4)  # seven requests are two parts
    # The batch is under way when the next process looks for it, and its custom ids cannot be read yet.
    with AnthropicServer(seconds=0.2) as server:
        llm = model(server)
        with monkeypatch.context() as patched:
            patched.setattr(place, name, dies)
            killed = False
            try:
                texts(llm, store)
            except Killed:
                killed = True
        assert killed or nth > len(calls)
        assert texts(llm, store) == REPLIES
    assert server.submitted == Counter(PROMPTS) == server.whole
    assert llm.spent(store) == pytest.approx(server.charged)
    assert open_rows(store) == (0, 0)


@pytest.mark.parametrize("step", ["create", "look", "content", "list"])
def test_an_answer_that_is_lost_makes_no_second_batch(store: Store, step: str) -> None:
    with AnthropicServer(seconds=0.1) as server:
        server.lose[step] = 1
        server.lose["create"] = 1
        llm = model(server, timeout=30.0)
        assert texts(llm, store) == REPLIES
    assert server.steps["create"] == 1
    assert llm.spent(store) == pytest.approx(server.charged)


def test_a_batch_of_others_is_not_taken_and_one_that_may_be_ours_is_waited_for(store: Store) -> None:
    def body(name: str) -> dict[str, Any]:
        params = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": f"theirs {name}"}]}
        return {"requests": [{"custom_id": f"{name}-{i}", "params": params} for i in range(len(PROMPTS))]}

    with AnthropicServer() as server:
        server.look(server.create(body("ended")))
        server.seconds = None
        server.create(body("open"))
        server.seconds = 0.0
        server.refuse["create"] = [500]  # nothing was made
        llm = model(server, submit_wait=False)
        for _ in range(2):
            with pytest.raises(WaitingError, match="one whose creation is looked for"):
                llm.ask(PROMPTS, store, "answers")
            time.sleep(llm.timeout)  # a batch in progress may be it, whenever it was created
        server.finish()
        assert texts(model(server), store) == REPLIES
    assert [server.submitted[prompt] for prompt in PROMPTS] == [1] * 7
    assert len(server.batches) == 3


def test_the_list_is_read_page_by_page(store: Store) -> None:
    with AnthropicServer() as server:
        server.lose["create"] = 1
        server.refuse["list"] = [400]
        with pytest.raises(ConfigError, match="refuses with 400"):
            texts(model(server), store)
        params = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "another"}]}
        for i in range(130):
            server.create({"requests": [{"custom_id": f"x{i}", "params": params}]})
        assert texts(model(server), store) == REPLIES
    assert server.steps["list"] == 3
    assert [server.submitted[prompt] for prompt in PROMPTS] == [1] * 7


@pytest.mark.parametrize("fate", ["500", "expired", "empty", "broken", "missing"])
def test_a_request_without_a_reply_is_in_the_next_batch(store: Store, fate: str) -> None:
    with AnthropicServer(fate=lambda prompt, n: fate if prompt == PROMPTS[2] and n == 0 else None) as server:
        found = model(server).ask(PROMPTS, store, "answers")
    assert [reply.text for reply in found] == REPLIES
    assert server.submitted == Counter(PROMPTS) + Counter([PROMPTS[2]])
    assert found[2].usage.calls == 1 + (fate in ("empty", "broken", "missing"))


def test_refusals_and_odd_lines_are_told(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    fates = {PROMPTS[0]: "400", PROMPTS[1]: "twice", PROMPTS[2]: "strange", PROMPTS[3]: "untold"}
    with AnthropicServer(fate=lambda prompt, n: fates.get(prompt)) as server:
        found = model(server).ask(PROMPTS, store, "answers")
    assert [reply.text for reply in found] == [None, *REPLIES[1:]]
    assert re.search(r"1 attempt\(s\) by batch .* invalid_request_error: refused: 400", str(found[0].error))
    assert "1 line(s) of a batch name no request of it" in caplog.text
    assert "1 reply(s) of a batch told no usage" in caplog.text
    assert set(server.submitted.values()) == {1}


def test_a_cancelled_batch_keeps_what_it_has(store: Store) -> None:
    with AnthropicServer(fate=lambda prompt, n: "canceled" if n == 0 and prompt > PROMPTS[3] else None) as server:
        llm = model(server)
        with pytest.raises(MissingError, match=r"msgbatch_1 .* was cancelled; 7 replies are kept"):
            llm.ask(PROMPTS, store, "answers")
        assert texts(llm, store) == REPLIES
    assert server.submitted == Counter(PROMPTS) + Counter(PROMPTS[4:])
    assert llm.spent(store) == pytest.approx(server.charged)


def test_without_the_package_the_refusal_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragauge.contract.extras.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"langchain_anthropic, which is not installed: pip install 'ragauge\[anth"):
        ChatLLM({"_target_": "langchain_anthropic.ChatAnthropic", "model": "m"}, submit="batch")
