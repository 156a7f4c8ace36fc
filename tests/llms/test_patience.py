"""Calls wait for a server that is late, loads, restarts or is not there, and say so once."""

import dataclasses
import logging
import threading
import time
from typing import Any

import pytest

from chat_server import ChatServer
from ragauge.contract.errors import ConfigError, MissingError
from ragauge.llms import served
from ragauge.llms.addresses import is_own
from ragauge.llms.chat import ChatLLM
from ragauge.store import Store
from servers import free_port


@pytest.fixture(autouse=True)
def asked_nobody_yet() -> None:
    served._asked_once.cache_clear()


def model(url: str, name: str = "tiny", **fields: Any) -> ChatLLM:
    chat = {"_target_": "langchain_openai.ChatOpenAI", "model": name, "base_url": f"{url}/v1", "temperature": 0}
    return ChatLLM(chat=chat, **{"backoff": 0.01, "api_key_env": "RAGAUGE_API_KEY", **fields})


def listing(*names: str, root: str = "a") -> dict[str, Any]:
    return {"/v1/models": {"object": "list", "data": [{"id": name, "root": root} for name in names]}}


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_late_reply_is_told_at_once_and_the_next_attempt_has_twice_the_time(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with ChatServer(delay=0.8) as server:
        reply, again = model(server.url, timeout=0.5, concurrency=1).ask(["p", "q"], store, "answers")
    assert (reply.text, again.text) == ("reply to p", "reply to q")
    assert min(server.calls["p"], server.calls["q"]) >= 2
    late = [line for line in told(caplog) if "no reply within" in line]
    assert late == [
        f"answers: no reply within 0.5 s from model tiny at {server.url}/v1; asked again with 1 s. A server that "
        "works on fewer requests at once than concurrency=1 lets the others queue: lower it, or raise timeout"
    ]


def test_a_server_that_loads_is_waited_for_without_an_attempt_being_used_up(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with ChatServer(faults=lambda prompt, n: "503" if n < 3 else None) as server:
        replies = model(server.url, retries=0).ask(["p", "q"], store, "answers")
    assert [reply.text for reply in replies] == ["reply to p", "reply to q"]
    away, back = told(caplog)
    assert "is not in service (InternalServerError: Error code: 503" in away
    assert "waited for, 300 s at most" in away
    assert back.startswith(f"answers: model tiny at {server.url}/v1 is back after ")


def test_a_server_that_stays_away_ends_the_batch_and_keeps_what_was_answered(store: Store) -> None:
    with ChatServer(faults=lambda prompt, n: "503" if prompt == "q" else None) as server:
        llm = model(server.url, max_wait=0.7, concurrency=1)
        with pytest.raises(MissingError, match=r"was away for 0\.7 s: .*503.*\. What was answered is kept"):
            llm.ask(["p", "q"], store, "answers")
        assert llm.ask(["p"], store, "answers")[0].cached


@pytest.mark.parametrize("weights", ["a", "b"])
def test_a_server_that_restarts_is_waited_for_and_asked_what_it_serves_then(store: Store, weights: str) -> None:
    port = free_port()
    with ChatServer(port=port, about=listing("tiny")) as before:
        llm = model(before.url, retries=1, concurrency=1)
        llm.ask(["p"], store, "answers")
        before.faults = lambda prompt, n: "reset"  # the connection that is still open
    after = list[ChatServer]()
    starting = threading.Timer(
        0.8, lambda: after.append(ChatServer(port=port, about=listing("tiny", root=weights)).__enter__())
    )
    starting.start()
    try:
        if weights == "a":
            assert [reply.text for reply in llm.ask(["q", "r"], store, "answers")] == ["reply to q", "reply to r"]
        else:
            with pytest.raises(MissingError, match=r'came back with another model: it serves {"root":"b"}'):
                llm.ask(["q", "r"], store, "answers")
            after[0].about = listing("tiny")
            assert not any(reply.cached for reply in llm.ask(["q", "r"], store, "answers"))
    finally:
        starting.join()
        after[0].__exit__()


def test_an_address_of_this_machine_where_nothing_listens_ends_the_batch_within_seconds(store: Store) -> None:
    began = time.monotonic()
    with pytest.raises(MissingError, match=r"answers: nothing listens at model tiny at http://127\.0\.0\.1:\d+/v1: "):
        model(f"http://127.0.0.1:{free_port()}", backoff=1.0).ask([f"p{i}" for i in range(30)], store, "answers")
    assert time.monotonic() - began < 10


class Loading(dict[str, Any]):
    """What a server says of its models: that it loads, and from the second question on what it serves."""

    def get(self, path: str, default: Any = None) -> Any:
        said = super().get(path, default)
        self.update(listing("tiny"))
        return said


def test_a_server_that_loads_tells_what_it_serves_when_it_has_loaded(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(served, "_SECONDS_BETWEEN", 0.1)
    with ChatServer(about=Loading({"/v1/models": 503})) as server:
        assert model(server.url).served(store) == {"root": "a"}
    assert told(caplog) == [f"the server at {server.url[7:]} loads its model (503); waited for, 300 s at most"]


def test_a_name_that_a_server_of_one_s_own_does_not_list_is_refused_before_anything_is_asked(store: Store) -> None:
    with ChatServer(about=listing("small", "large")) as server:
        with pytest.raises(ConfigError, match=r"chat\.model: gpt9 is none of the models at .*: small, large"):
            model(server.url, "gpt9").ask(["p"], store, "answers")
        with pytest.raises(ConfigError, match=r"chat\.model: gpt9 is none of the models at .*: small, large"):
            model(server.url, "gpt9").check_ready(store)
        assert not server.calls
        server.about = listing("small", "openai/*")
        served._asked_once.cache_clear()
        assert model(server.url, "openai/gpt9").ask(["p"], store, "answers")[0].text == "reply to p"


def test_a_job_is_ready_without_key_or_server_where_the_ledger_has_replies(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with ChatServer() as server:
        keyless = dataclasses.replace(model(server.url), api_key_env="MY_KEY")
        keyless.check_ready(store)  # a server of one's own may check none
        model(server.url).ask(["p"], store, "answers")
        address = server.url
    gone = model(address)
    gone.check_ready(store)
    with pytest.raises(MissingError, match=rf"^nothing listens at {address}/v1, where model tiny is asked$"):
        gone.check_ready(Store(store.root / "other"))


@pytest.mark.parametrize(
    ("address", "own"),
    [
        ("http://localhost:8000/v1", True),
        ("http://127.0.0.1:1", True),
        ("http://192.168.0.7:8000", True),
        ("http://[::1]:8000", True),
        ("https://openrouter.ai/api/v1", False),
        ("https://8.8.8.8/v1", False),
        ("", False),
    ],
)
def test_addresses_of_one_s_own(address: str, own: bool) -> None:
    assert is_own(address) is own
