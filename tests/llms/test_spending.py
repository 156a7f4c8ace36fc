"""What calls cost under a server that does not tell, or lies, or charges for what is no answer."""

from __future__ import annotations

import logging
import random
from typing import Any

import pytest

from chat_server import UNTOLD, ChatServer, Usage
from patched import instead_of
from ragauge.contract.errors import GateError, MissingError
from ragauge.llms import calls
from ragauge.llms.chat import ChatLLM
from ragauge.llms.ledger import open_ledger
from ragauge.store import Store

# A token costs a dollar: a call with prompt "prompt 7" can cost 64 + 8 of prompt and 10 of completion.
PRICE = {"prompt": 1e6, "completion": 1e6}
PROMPTS = [f"prompt {i}" for i in range(10, 60)]
BOUND = 64 + 9 + 10


def model(server: ChatServer, kind: str = "openai", **fields: Any) -> ChatLLM:
    if kind == "ollama":
        chat = {"_target_": "langchain_ollama.ChatOllama", "base_url": server.url, "num_predict": 10}
    else:
        chat = {"_target_": "langchain_openai.ChatOpenAI", "base_url": f"{server.url}/v1", "max_tokens": 10}
        fields = {"api_key_env": "RAGAUGE_API_KEY", **fields}
    usual = {"backoff": 0.001, "timeout": 10.0, "retries": 1, "price": PRICE, "budget": "b"}
    return ChatLLM(chat={**chat, "model": "m"}, **{**usual, **fields})


def partly(name: str) -> Usage:
    return lambda prompt, n, honest: {key: value for key, value in honest.items() if key != name}


def saying(usage: Any) -> Usage:
    return lambda prompt, n, honest: usage


def alternating(prompt: str, n: int, honest: dict[str, Any]) -> Any:
    return random.Random(f"{prompt}/{n}").choice(
        [honest, UNTOLD, None, {}, {"prompt_tokens": -9, "completion_tokens": -9}, {"prompt_tokens": "x"}]
    )


UNKNOWN = {
    "absent": saying(UNTOLD),
    "null": saying(None),
    "empty": saying({}),
    "zero with text": saying({"prompt_tokens": 0, "completion_tokens": 0}),
}
ABSURD = {
    "negative": saying({"prompt_tokens": -1, "completion_tokens": 2}),
    "words": saying({"prompt_tokens": "many", "completion_tokens": 2}),
    "NaN": saying({"prompt_tokens": float("nan"), "completion_tokens": 2}),
    "beyond any call": saying({"prompt_tokens": 10**30, "completion_tokens": 2}),
    "a list": saying([1, 2]),
}


@pytest.mark.parametrize("kind", ["openai", "ollama"])
@pytest.mark.parametrize("usage", UNKNOWN.values(), ids=UNKNOWN)
def test_usage_that_the_server_does_not_tell_is_charged_at_its_bound_and_said_so(
    store: Store, usage: Usage, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with ChatServer(usage=usage) as server:
        replies = model(server, kind).ask(PROMPTS[:3], store, "answers")
    assert [r.text for r in replies] == [f"reply to {p}" for p in PROMPTS[:3]]
    assert [(r.usage.cost_usd, r.usage.calls, r.usage.usage_unknown) for r in replies] == [(BOUND, 1, 1)] * 3
    assert [(r.usage.prompt_tokens, r.usage.completion_tokens) for r in replies] == [(None, None)] * 3
    (said,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert "3 call(s) came without a usable token count" in said
    # A later run finds it marked in the ledger.
    with ChatServer() as server:
        again = model(server, kind)
        assert again.spent(store) == 3 * BOUND
        assert [(r.cached, r.usage.usage_unknown, r.usage.cost_usd) for r in again.ask(PROMPTS[:3], store, "a")] == [
            (True, 1, 0.0)
        ] * 3


@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_the_part_of_the_usage_that_is_told_is_charged_as_told(store: Store, kind: str) -> None:
    with ChatServer(usage=partly("completion_tokens")) as server:
        (reply,) = model(server, kind).ask(["prompt 10"], store, "answers")
    assert (reply.usage.cost_usd, reply.usage.prompt_tokens, reply.usage.completion_tokens) == (2 + 10, 2, None)
    with ChatServer(usage=partly("prompt_tokens")) as server:
        (reply,) = model(server, kind).ask(["prompt 11"], store, "answers")
    assert (reply.usage.cost_usd, reply.usage.prompt_tokens, reply.usage.completion_tokens) == (64 + 9 + 4, None, 4)


@pytest.mark.parametrize("usage", ABSURD.values(), ids=ABSURD)
def test_a_usage_that_is_no_number_of_tokens_costs_its_bound_and_the_text_is_kept(store: Store, usage: Usage) -> None:
    with ChatServer(usage=usage) as server:
        llm = model(server)
        (reply,) = llm.ask(PROMPTS[:1], store, "answers")
        (again,) = llm.ask(PROMPTS[:1], store, "answers")
        assert server.calls[PROMPTS[0]] == 1
    assert reply.text == again.text == f"reply to {PROMPTS[0]}"
    assert (reply.usage.calls, reply.usage.usage_unknown, reply.usage.cost_usd) == (1, 1, BOUND)
    assert llm.spent(store) == BOUND


def test_ollamas_absurd_counts_cost_the_bound_too(store: Store) -> None:
    with ChatServer(usage=saying({"prompt_tokens": 10**18, "completion_tokens": 2})) as server:
        (reply,) = model(server, "ollama").ask(PROMPTS[:1], store, "answers")
    assert (reply.text, reply.usage.usage_unknown, reply.usage.cost_usd) == (f"reply to {PROMPTS[0]}", 1, BOUND)


def test_usage_above_the_bound_is_charged_as_it_is_and_told_once(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with ChatServer(usage=saying({"prompt_tokens": 1000, "completion_tokens": 5000})) as server:
        replies = model(server).ask(PROMPTS[:3], store, "answers")
    assert [(r.usage.cost_usd, r.usage.usage_unknown) for r in replies] == [(6000, 0)] * 3
    (said,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert "above the bound" in said
    assert "1000 prompt tokens where 73 were the most" in said


def test_usage_above_the_bound_is_not_told_where_no_money_is_counted(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with ChatServer(usage=saying({"prompt_tokens": 1000, "completion_tokens": 5000})) as server:
        (reply,) = model(server, price=None).ask(PROMPTS[:1], store, "answers")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.cost_usd) == (1000, 5000, 0.0)
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


def test_the_longest_pause_doubles_with_every_attempt_up_to_the_most(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest: list[float] = []
    drawn = instead_of(random, uniform=lambda low, high: longest.append(high) or low)
    monkeypatch.setattr(calls, "random", drawn)
    with ChatServer(faults=lambda prompt, n: "500") as server:
        llm = model(server, retries=5, backoff=0.01, max_wait=0.05)
        (reply,) = llm.ask(["prompt 10"], store, "answers")
    assert reply.text is None
    assert longest == pytest.approx([0.01, 0.02, 0.04, 0.05, 0.05])


@pytest.mark.parametrize("usage", [*UNKNOWN.values(), *ABSURD.values(), alternating],
                         ids=[*UNKNOWN, *ABSURD, "alternating"])  # fmt: skip
def test_no_lie_about_usage_gets_past_the_spending_limit(store: Store, usage: Usage) -> None:
    limit = 1000.0
    with ChatServer(usage=usage, delay=0.01) as server:
        llm = model(server, max_cost_usd=limit, concurrency=16, retries=3)
        with pytest.raises(GateError, match="max_cost_usd"):
            llm.ask(PROMPTS, store, "answers")
        # Even if each call costs the most it can, the server has not charged more than the limit.
        if usage is not alternating:
            assert sum(server.calls.values()) * BOUND <= limit
        spent = llm.spent(store)
        assert limit - BOUND < spent <= limit
        # Every call that the server answered is in the ledger, and a rerun makes none.
        assert len(open_ledger(store.root / "ledger.db")) == sum(server.calls.values())
        before = sum(server.calls.values())
        with pytest.raises(GateError):
            llm.ask(PROMPTS, store, "answers")
        assert sum(server.calls.values()) == before


def test_calls_in_flight_that_each_cost_their_bound_stay_within_the_limit(store: Store) -> None:
    # Each costs exactly its bound; 16 at once would cost more than the limit, if they did not wait.
    full = saying({"prompt_tokens": 73, "completion_tokens": 10})
    with ChatServer(usage=full, delay=0.3) as server:
        llm = model(server, max_cost_usd=4.5 * BOUND, concurrency=16)
        with pytest.raises(GateError):
            llm.ask(PROMPTS, store, "answers")
        assert sum(server.calls.values()) == 4
    assert llm.spent(store) == 4 * BOUND


@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_a_reply_without_a_reason_of_ending_is_paid_for_before_it_is_refused(store: Store, kind: str) -> None:
    with ChatServer(faults=lambda prompt, n: "unfinished") as server:
        llm = model(server, kind)
        (reply,) = llm.ask(["prompt 10"], store, "answers")
        assert server.calls["prompt 10"] == 2
        assert "the connection ended before the reply did" in str(reply.error)
        # Two prompt tokens, "reply to prompt 10" is four.
        assert (reply.text, reply.usage.calls, reply.usage.usage_unknown, reply.usage.cost_usd) == (None, 2, 0, 12)
        assert llm.spent(store) == 12
        server.faults = lambda prompt, n: None
        (later,) = llm.ask(["prompt 10"], store, "answers")
        assert (later.text, later.cached) == ("reply to prompt 10", False)


@pytest.mark.parametrize("fault", ["hang", "reset", "cut", "empty", "504"])
def test_an_attempt_that_the_server_may_have_charged_counts_at_its_bound(store: Store, fault: str) -> None:
    with ChatServer(faults=lambda prompt, n: fault if n == 0 else None, hang=4.0) as server:
        llm = model(server, timeout=2.0 if fault == "hang" else 10.0)
        (reply,) = llm.ask(["prompt 10"], store, "answers")
        assert server.calls["prompt 10"] == 2
    assert (reply.text, reply.usage.calls, reply.usage.usage_unknown) == ("reply to prompt 10", 2, 1)
    assert reply.usage.cost_usd == llm.spent(store) == BOUND + 6


@pytest.mark.parametrize("fault", ["429", "500", "502", "400"])
def test_an_error_that_the_server_reports_costs_nothing(store: Store, fault: str) -> None:
    with ChatServer(faults=lambda prompt, n: fault) as server:
        llm = model(server)
        (reply,) = llm.ask(["prompt 10"], store, "answers")
    assert (reply.usage.calls, reply.usage.cost_usd, llm.spent(store)) == (0, 0, 0)


def test_a_server_that_cannot_be_reached_costs_nothing(store: Store) -> None:
    with ChatServer() as server:
        llm = model(server)
    with pytest.raises(MissingError, match="nothing listens at model"):
        llm.ask(["prompt 10"], store, "answers")
    assert llm.spent(store) == 0


def test_equal_prompts_that_fail_are_counted_once(store: Store) -> None:
    with ChatServer(reply=lambda prompt: " ") as server:
        llm = model(server, retries=0)
        replies = llm.ask(["prompt 10"] * 3, store, "answers")
    assert [r.usage.calls for r in replies] == [1, 0, 0]
    assert sum(r.usage.cost_usd for r in replies) == llm.spent(store) == 2


def test_scattered_failures_do_not_end_a_healthy_batch(store: Store) -> None:
    prompts = [f"{'bad' if i % 2 else 'good'} {i}" for i in range(20)]
    with ChatServer(faults=lambda prompt, n: "500" if "bad" in prompt else None) as server:
        llm = model(server, concurrency=1, retries=0, give_up_after=3)
        replies = llm.ask(prompts, store, "answers")
    assert [r.text is None for r in replies] == ["bad" in prompt for prompt in prompts]


def test_options_that_go_with_a_request_count_in_its_bound() -> None:
    with ChatServer() as server:
        llm = model(server)
    assert llm.cost_bound("prompt 10") == BOUND
    assert llm.cost_bound("prompt 10", {"stop": ["."]}) == BOUND + len('{"stop":["."]}')
