"""A chat server that attacks: what it attacks has a text or an error, and nothing else is harmed."""

from __future__ import annotations

import asyncio
import tracemalloc
from contextlib import nullcontext

import httpx
import pytest

from attack_server import ATTACKS, BOMBS, STALLING, AttackServer
from chat_server import ChatServer
from ragauge.contract.errors import ConfigError
from ragauge.llms import clients
from ragauge.llms.chat import ChatLLM
from ragauge.llms.ledger import open_ledger
from ragauge.store import Store

# Replies with a text that can be read are answers, whatever is odd about them.
ANSWERS = {
    "huge_usage", "finish_reason_unknown", "two_choices", "duplicate_keys", "megabytes", "strange_characters",
}  # fmt: skip
# What these are is a matter of what their usage says, and of what the client makes of it.
EITHER = {
    "no_usage", "null_usage", "negative_usage", "string_usage", "fractional_usage", "not_a_number",
    "number_for_text", "finish_reason_null",
}  # fmt: skip


CLIENTS = {
    "openai": ("langchain_openai.ChatOpenAI", "/v1", "/chat/completions"),
    "ollama": ("langchain_ollama.ChatOllama", "", "/api/chat"),
}


def model(server: ChatServer, timeout: float, client: str = "openai") -> ChatLLM:
    target, base, _ = CLIENTS[client]
    chat = {"_target_": target, "model": "tiny", "base_url": server.url + base}
    price = {"prompt": 1.0, "completion": 1.0}
    return ChatLLM(
        chat=chat, api_key_env="NO_KEY", timeout=timeout, retries=1, backoff=0.01, price=price, concurrency=1
    )


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attacked_request_has_a_text_or_an_error_and_the_others_their_replies(store: Store, attack: str) -> None:
    with AttackServer(faults=lambda prompt, n: attack if prompt == "attacked" else None) as server:
        (before,) = model(server, 60).ask(["before"], store, "answers")
        timeout = 0.5 if attack in STALLING else 60
        (attacked,) = model(server, timeout).ask(["attacked"], store, "answers")
        (after,) = model(server, 60).ask(["after"], store, "answers")
        assert server.calls["attacked"] <= 2
    assert (before.text, after.text) == ("reply to before", "reply to after")
    assert (attacked.text is None) == (attacked.error is not None)
    if attack not in EITHER:
        assert (attacked.text is not None) == (attack in ANSWERS), attacked
    assert attacked.usage.cost_usd >= 0 or attack in EITHER


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("status", ["301", "302", "303", "307", "308"])
def test_a_redirection_is_not_followed_and_costs_nothing(store: Store, client: str, status: str) -> None:
    _, base, path = CLIENTS[client]
    with ChatServer() as elsewhere, ChatServer(faults=lambda prompt, n: status) as server:
        for server.away in (elsewhere.url + base + path, None):  # another host, then a loop
            llm = model(server, 60, client)
            says = f"^answers: model tiny at {server.url}{base} sends to {server.away or base + path} "
            with pytest.raises(ConfigError, match=rf"{says}\(status {status}\); give the address itself$"):
                llm.ask(["attacked", "another"], store, "answers")
            assert sum(server.calls.values()) == (1 if server.away else 2)
        assert not elsewhere.calls
        assert not elsewhere.asked_about
        assert len(open_ledger(store.root / "ledger.db")) == 0


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("bomb", BOMBS)
def test_no_more_is_unpacked_than_a_reply_may_hold(store: Store, client: str, bomb: str) -> None:
    with AttackServer(faults=lambda prompt, n: bomb if prompt == "attacked" else None) as server:
        llm = model(server, 30, client)
        llm.ask(["before"], store, "answers")
        tracemalloc.start()
        (attacked,) = llm.ask(["attacked"], store, "answers")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert attacked.text is None
    said = {
        "packed_once": "longer than 16 MiB",
        "packed_twice": "packed as 'gzip, gzip'",
        "packed_error": "2 attempt(s)",
        "endless_body": "longer than 16 MiB",
        "many_calls": "more than 250,000 objects and lists",
    }
    assert said[bomb] in str(attacked.error)
    assert peak < 64 << 20


@pytest.mark.parametrize(("body", "refused"), [(b'[{"a": {}}]', False), (b'[{"a": [{}]}]', True)])
def test_a_response_of_too_many_objects_and_lists_is_refused(
    monkeypatch: pytest.MonkeyPatch, body: bytes, refused: bool
) -> None:
    monkeypatch.setattr(clients, "_MOST_PARTS", 3)
    read = clients.hooks()["response"][0](httpx.Response(200, content=body))
    with pytest.raises(clients.BadResponse, match="more than 3 objects") if refused else nullcontext():
        asyncio.run(read)
