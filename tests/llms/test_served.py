"""What servers say that they serve: part of what replies are found by."""

import json
import logging
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chat_server import ChatServer
from ragauge.answering import ChatGenerator
from ragauge.contract.errors import ConfigError
from ragauge.llms import served
from ragauge.llms.chat import ChatLLM
from ragauge.llms.ledger import open_ledger
from ragauge.llms.served import Served, remember, remembered_by
from ragauge.store import Store
from small_pipeline import SmallPipelines

SECRET = "sk-planted-0123456789abcdef"
Model = Callable[..., ChatLLM]


@pytest.fixture(autouse=True)
def later() -> Callable[[], None]:
    """Makes what follows happen in a process that has asked nobody yet."""
    served._asked_once.cache_clear()
    return served._asked_once.cache_clear


def openai(server: ChatServer | str, model: str = "tiny", **fields: Any) -> ChatLLM:
    url = server if isinstance(server, str) else server.url
    chat = {"_target_": "langchain_openai.ChatOpenAI", "model": model, "base_url": f"{url}/v1"}
    fields = {"retries": 0, "timeout": 20.0, "api_key_env": "RAGAUGE_API_KEY", **fields}
    return ChatLLM(chat=chat, **fields)


def ollama(server: ChatServer | str, model: str = "tiny", **fields: Any) -> ChatLLM:
    url = server if isinstance(server, str) else server.url
    chat = {"_target_": "langchain_ollama.ChatOllama", "model": model, "base_url": url}
    return ChatLLM(chat=chat, **{"retries": 0, "timeout": 20.0, **fields})


def vllm(root: str) -> dict[str, Any]:
    """As vLLM says it, among other models; `created` is the time of the request."""
    of_model = {"object": "model", "created": time.time_ns(), "owned_by": "vllm", "max_model_len": 4096}
    entries = [{"id": "other", "root": "x"}, {"id": "tiny", "root": root, "parent": None, **of_model}]
    return {"/v1/models": {"object": "list", "data": entries}}


def tags(digest: str) -> dict[str, Any]:
    entries = [{"name": "other:latest", "digest": "x"}, {"name": "tiny:latest", "digest": digest, "size": 9}]
    return {"/api/tags": {"models": entries}}


@pytest.mark.parametrize(("make", "about"), [(openai, vllm), (ollama, tags)])
def test_two_servers_with_other_weights_under_one_name_share_no_reply(
    make: Model, about: Callable[[str], dict[str, Any]], store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with ChatServer(about=about("a"), reply=lambda p: "of a") as a, ChatServer(about=about("b")) as b:
        assert make(a).ask(["p"], store, "answers")[0].text == "of a"
        assert make(b).ask(["p"], store, "answers")[0].text == "reply to p"
        b.about = about("a")
        assert make(a).ask(["p", "q"], store, "answers")[0].cached
        assert len(a.asked_about) == len(b.asked_about) == 1
    with ChatServer(about=about("a")) as elsewhere:
        assert make(elsewhere).ask(["p"], store, "answers")[0].text == "of a"
        assert not elsewhere.calls
    assert make(a).served(store) != make(b).served(store)
    assert make(a).describe(_Tools(store)) == {"served": json.dumps(make(a).served(store), separators=(",", ":"))}


class _Tools:
    def __init__(self, store: Store) -> None:
        self.store = store


def test_what_changes_with_a_restart_is_no_part_of_it(store: Store) -> None:
    llama = {"id": "tiny", "created": 5, "meta": {"n_params": 7, "size": 8, "n_ctx": 4096}, "owned_by": "x"}
    about = {"/v1/models": {"data": [llama], "models": [{"name": "tiny", "digest": ""}]}}
    with ChatServer(about=vllm("a")) as server, ChatServer(about=about) as other:
        assert openai(server).served(store) == {"root": "a"}
        assert openai(other).served(store) == {"n_params": 7, "size": 8}


def test_ollama_that_lists_no_digest_is_asked_to_show_the_model(store: Store) -> None:
    info = {"details": {"family": "llama"}, "model_info": {"general.parameter_count": 1}, "modified_at": "x"}
    with ChatServer(about={"/api/show": info}) as one, ChatServer(about={"/api/show": {}}) as silent:
        (digest,) = ollama(one).served(store).values()
        assert re.fullmatch("[0-9a-f]{64}", digest)
        assert [path for path, _ in one.asked_about] == ["/api/tags", "/api/show"]
        assert ollama(silent).served(store) == {}


def test_a_finished_sweep_does_not_need_the_server(
    store: Store, later: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with ChatServer(about=vllm("a")) as server:
        openai(server).ask(["p"], store, "answers")
        later()
        server.about = {"/v1/models": {"data": [{"id": "another model is served today"}]}}
        assert openai(server).ask(["p"], store, "answers")[0].cached
    later()
    assert openai(server).ask(["p"], store, "answers")[0].cached
    assert 'it last said {"root":"a"}' in caplog.text


def test_other_weights_at_the_same_address_are_told_and_asked_again(
    store: Store, later: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    with ChatServer(about=vllm("a")) as server:
        openai(server).ask(["p"], store, "answers")
        later()
        server.about = vllm("b")
        assert not openai(server).ask(["p"], store, "answers")[0].cached
        assert server.calls["p"] == 2
    assert 'says that it serves {"root":"b"}, before it said {"root":"a"}' in caplog.text


_SHAPES: list[Any] = [
    *([], {}, None, 1, "text", {"data": None}, {"data": {}}, {"data": [None, 1, {"id": None}]}),
    *({"data": [{"id": "openai/*", "root": "x"}]}, {"data": [{"id": "tiny", "root": {"a": 1}, "digest": [2]}]}),
    *(500, 401, 404, b"<html>welcome</html>", b"", b"\xff\xfe", b"[" * 100_000, b"{" + b" " * 10_000_000),
]


@pytest.mark.parametrize("said", [*_SHAPES, "hang", "drip"], ids=lambda said: repr(said)[:24])
def test_a_server_that_says_nothing_of_use_ends_no_job(
    monkeypatch: pytest.MonkeyPatch, store: Store, said: Any
) -> None:
    monkeypatch.setattr(served, "_SECONDS", 1.0)
    with ChatServer(about=dict.fromkeys(("/v1/models", "/api/tags", "/api/show"), said), hang=15.0) as server:
        for llm in (openai(server), ollama(server))[: 1 if said in ("hang", "drip") else 2]:
            began = time.monotonic()
            assert llm.served(store) == {}
            assert time.monotonic() - began < 10
            assert llm.ask(["p"], store, "answers")[0].text == "reply to p"


def test_a_server_that_is_gone_says_nothing(store: Store) -> None:
    assert openai("http://127.0.0.1:9").served(store) == {}
    assert ollama("http://127.0.0.1:9").served(store) == {}


@pytest.mark.parametrize("model", ["gpt-4o", "other"])
def test_the_public_service_is_not_asked(model: str, monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(served, "_fetch", lambda *args: pytest.fail("a server was asked"))
    for chat in ({}, {"base_url": "https://api.openai.com/v1"}):
        llm = ChatLLM(chat={"_target_": "langchain_openai.ChatOpenAI", "model": model, **chat})
        assert llm.served(store) == {}


_TWO_NAMES = {"/v1/models": {"data": [{"id": name, "root": "same"} for name in ("tiny", "another name")]}}


@pytest.mark.parametrize("about", [{}, _TWO_NAMES], ids=["nothing said", "the same said"])
def test_two_addresses_that_nothing_tells_apart_are_warned_of(
    about: dict[str, Any], store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with ChatServer(about=about) as a, ChatServer(about=about) as b:
        for server in (a, b, a, b):
            openai(server, budget="sweep 1").ask(["p"], store, "answers")
        openai(a, "another name", budget="sweep 1").ask(["p"], store, "answers")
    (told,) = [r.getMessage() for r in caplog.records if "nothing tells apart" in r.getMessage()]
    assert f"{a.url}/v1 and at {b.url}/v1" in told


def test_addresses_of_other_sweeps_are_not_warned_of(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with ChatServer() as a, ChatServer() as b:
        openai(a, budget="sweep 1").ask(["p"], store, "answers")
        openai(b, budget="sweep 2").ask(["p"], store, "answers")
    assert "nothing tells apart" not in caplog.text


def test_the_key_is_sent_where_calls_go_and_kept_nowhere(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RAGAUGE_API_KEY", SECRET)
    caplog.set_level(logging.DEBUG)
    with ChatServer(about=vllm("x")) as elsewhere, ChatServer(about=vllm(f"Bearer {SECRET}")) as server:
        identity = openai(server).served(store)
        assert server.asked_about[0][1]["Authorization"] == f"Bearer {SECRET}"
        refusing = ChatServer(about={"/v1/models": 401})
        with refusing:
            assert openai(refusing).served(store) == {}
        away = {"/v1/models": "away", "away": f"{elsewhere.url}/v1/models"}
        with ChatServer(about=away) as redirecting:
            assert openai(redirecting).served(store) == {}
        assert not elsewhere.asked_about
    kept = [f.read_bytes().decode("latin-1") for f in store.root.rglob("*") if f.is_file()]
    assert not any(SECRET in place for place in [str(identity), caplog.text, *kept])


def test_stored_answers_of_other_weights_are_not_taken(small: SmallPipelines) -> None:
    with ChatServer(about=vllm("a"), reply=lambda p: "of a") as a, ChatServer(about=vllm("b")) as b:
        for server, kept in ((a, False), (b, False), (a, True)):
            chat = openai(server).chat
            llm = ChatGenerator(chat=chat, api_key_env="RAGAUGE_API_KEY", retries=0, timeout=20.0)
            pipeline = small(llm=llm)
            assert set(pipeline.answers["answer"] == "of a") == {server is a}
            assert ("answers" not in pipeline.made) == kept


def test_a_ledger_remembers_what_an_address_served(store: Store, tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l.db")
    assert remembered_by(ledger, "m") == []
    remember(ledger, Served("http://a", "m", "{}", "b"))
    remember(ledger, Served("http://a", "m", '{"root":"x"}', "c"))
    assert remembered_by(ledger, "m") == [Served("http://a", "m", '{"root":"x"}', "c")]


@pytest.mark.parametrize("place", ["[::1", "host:80x", "h:99999999", "[Qz7Rk2Wm9Xt4"])
@pytest.mark.parametrize("client", ["langchain_openai.ChatOpenAI", "langchain_ollama.ChatOllama"])
def test_an_address_that_cannot_be_read_is_one_line_without_its_password(
    client: str, place: str, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    chat = {"_target_": client, "model": "m", "base_url": f"http://me:Qz7Rk2Wm9Xt4@{place}/v1"}
    with pytest.raises(ConfigError, match=r"^chat\.base_url: cannot be read as an address; allowed are") as told:
        ChatLLM(chat=chat, api_key_env="RAGAUGE_API_KEY").ask(["p"], store, "answers")
    assert "\n" not in str(told.value)
    assert "Qz7R" not in f"{told.value} {caplog.text}"
