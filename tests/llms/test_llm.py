import json
import logging
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from chat_server import QUICK_FAULTS, ChatServer, faults_at
from processes import Command, until
from ragauge.contract import identity
from ragauge.contract.component import ChatModel
from ragauge.contract.errors import ConfigError, GateError, MissingError, RagaugeError
from ragauge.contract.redact import redact
from ragauge.contract.replies import CUT
from ragauge.contract.workplace import FreshWorkplace
from ragauge.llms.chat import ChatLLM
from ragauge.llms.ledger import open_ledger
from ragauge.store import Store

FAKE = "langchain_core.language_models.fake_chat_models.FakeListChatModel"

# A model of the provider at the address of a test server.
Make = Callable[..., ChatLLM]


@pytest.fixture(params=["ollama", "openai"])
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.delenv("RAGAUGE_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def llm(url: str, chat: dict[str, Any] | None = None, **fields: Any) -> ChatLLM:
        if request.param == "ollama":
            model = {"_target_": "langchain_ollama.ChatOllama", "base_url": url}
        else:
            model = {"_target_": "langchain_openai.ChatOpenAI", "base_url": f"{url}/v1"}
            fields = {"api_key_env": "RAGAUGE_API_KEY", **fields}
        model |= {"model": "tiny", "temperature": 0, **(chat or {})}
        return ChatLLM(chat=model, **{"backoff": 0.01, "timeout": 60.0, **fields})

    return llm


def fake(*replies: str, **fields: Any) -> ChatLLM:
    """A chat model of yet another provider: replies in turn, no server."""
    return ChatLLM(chat={"_target_": FAKE, "responses": list(replies)}, **{"concurrency": 1, **fields})


def test_the_language_is_part_of_the_model_and_of_each_request(store: Store) -> None:
    asked = "Question: Wer baute den Turm?"
    plain, german, auto = fake("a"), fake("b", language="de"), fake("c", language="auto")
    assert "language" not in identity.identity(plain)
    assert [identity.identity(llm)["language"] for llm in (german, auto)] == ["german", "auto"]
    texts = [llm.ask([asked], store, "answers")[0].text for llm in (plain, german, auto)]
    assert texts[:2] == ["a", "b"]
    # auto finds German in this question: the same request, which the ledger pays for once but for the model's replies.
    assert german.known([asked], store)[0] is not None
    assert german.needs_of([asked], store)["prompt_tokens"][0] > plain.needs_of([asked], store)["prompt_tokens"][0]
    english = "Question: Who built the tower?"
    assert auto.needs_of([english], store)["prompt_tokens"][0] == plain.needs_of([english], store)["prompt_tokens"][0]
    with pytest.raises(ConfigError, match="language='klingon': allowed are arabic"):
        fake("a", language="klingon")


# --- asking -------------------------------------------------------------------------------------------


def test_replies_come_in_the_order_of_the_prompts(make: Make, store: Store) -> None:
    lock, in_flight, seen = threading.Lock(), set(), []

    def when_two_are_there(prompt: str) -> str:
        with lock:
            in_flight.add(prompt)
            seen.append(len(in_flight))
        until(lambda: max(seen) > 1, "a second call in flight")
        in_flight.discard(prompt)
        return f"reply to {prompt}"

    with ChatServer(when_two_are_there) as server:
        llm = make(server.url)
        assert isinstance(llm, ChatModel)
        replies = llm.ask([f"p{i}" for i in range(20)], store, "answers")
        assert llm.ask([], store, "answers") == []
    assert [r.text for r in replies] == [f"reply to p{i}" for i in range(20)]
    assert not any(r.cached or r.error for r in replies)
    assert (replies[0].usage.prompt_tokens, replies[0].usage.completion_tokens) == (1, 3)
    assert 1 < max(seen) <= llm.concurrency
    assert server.bodies[0]["model"] == "tiny"


def test_equal_prompts_are_paid_once_and_later_runs_pay_nothing(make: Make, store: Store) -> None:
    with ChatServer() as server:
        llm = make(server.url, price={"prompt": 1e6, "completion": 2e6})
        replies = llm.ask(["a b", "c", "a b"], store, "answers")
        again = llm.ask(["c", "a b"], store, "answers")
    assert [r.cached for r in replies] == [False, False, True]
    assert [r.usage.cost_usd for r in replies] == [2 + 2 * 4, 1 + 2 * 3, 0]
    assert [(r.text, r.cached, r.usage.cost_usd) for r in again] == [
        ("reply to c", True, 0),
        ("reply to a b", True, 0),
    ]
    assert again[1].usage.prompt_tokens == 2
    assert [r.usage.calls for r in (*replies, *again)] == [1] * 5
    assert server.whole == {"a b": 1, "c": 1}
    assert llm.spent(store) >= 17


def test_salt_options_and_parameters_are_other_requests_and_connections_are_not(make: Make, store: Store) -> None:
    with ChatServer() as server, ChatServer() as elsewhere:
        make(server.url).ask(["p"], store, "answers")
        make(server.url).ask(["p"], store, "answers", salt="again")
        make(server.url, {"temperature": 0.5}).ask(["p"], store, "answers")
        make(server.url).ask(["p"], store, "answers", options={"stop": ["."]})
        assert server.whole["p"] == 4
        assert server.bodies[-1].get("stop", server.bodies[-1].get("options", {}).get("stop")) == ["."]
        reply = make(elsewhere.url, concurrency=1, timeout=9.0).ask(["p"], store, "answers")
        assert reply[0].cached
        assert not elsewhere.calls


def test_a_fresh_workplace_asks_again_what_the_ledger_knows(store: Store, tmp_path: Path) -> None:
    llm = fake("first", "second")
    llm.ask(["p"], store, "answers")
    fresh = FreshWorkplace(tmp_path / "scratch", store.root, "fresh")
    found = [llm.ask(["p"], place, "answers")[0] for place in (fresh, fresh, store)]
    assert [(reply.text, reply.cached) for reply in found] == [("second", False), ("second", True), ("first", True)]


def test_a_running_event_loop_is_no_obstacle(store: Store) -> None:
    import asyncio

    async def as_in_a_notebook() -> str | None:
        return fake("one").ask(["p"], store, "answers")[0].text

    assert asyncio.run(as_in_a_notebook()) == "one"


# --- what goes wrong ----------------------------------------------------------------------------------


def test_with_thirty_percent_faults_each_distinct_request_succeeds_once(make: Make, store: Store) -> None:
    prompts = [f"p{i % 60}" for i in range(100)]
    with ChatServer(faults=faults_at(0.3, 1, QUICK_FAULTS)) as server:
        replies = make(server.url, retries=8, concurrency=8).ask(prompts, store, "answers")
    assert [r.text for r in replies] == [f"reply to {p}" for p in prompts]
    assert sum(server.whole.values()) == len(server.whole) == 60
    assert sum(server.calls.values()) > 60


@pytest.mark.parametrize("fault", ["429", "500", "502", "reset", "hang", "cut", "empty", "none", "drip"])
def test_what_fails_for_good_is_missing_with_its_error(
    make: Make, store: Store, fault: str, request: pytest.FixtureRequest
) -> None:
    if fault == "drip" and "ollama" in request.node.name:
        pytest.skip("a fault of the OpenAI side of the server")

    def only_bad(prompt: str, n: int) -> str | None:
        return fault if prompt == "bad" else None

    # Where the time-out is the point, it is long enough for a busy machine to have sent the request.
    timeout = 1.0 if fault in ("hang", "drip") else 60.0
    with ChatServer(faults=only_bad, hang=600) as server:
        (good,) = make(server.url).ask(["good"], store, "answers")
        (bad,) = make(server.url, timeout=timeout, retries=1).ask(["bad"], store, "answers")
        assert good.text == "reply to good"
        assert bad.text is None
        assert bad.error is not None
        assert bad.error.startswith("2 attempt(s) (model ")
        assert "), the last: " in bad.error
        assert server.calls["bad"] == 2
        server.faults = lambda prompt, n: None
        later = make(server.url).ask(["bad"], store, "answers")[0]
    assert (later.text, later.cached) == ("reply to bad", False)


def test_a_request_that_the_server_cannot_take_is_not_repeated(make: Make, store: Store) -> None:
    with ChatServer(faults=lambda prompt, n: "400" if prompt == "bad" else None) as server:
        bad, good = make(server.url).ask(["bad", "good"], store, "answers")
    assert (bad.text, good.text) == (None, "reply to good")
    assert server.calls["bad"] == 1


@pytest.mark.parametrize("status", ["401", "403", "404", "405"])
def test_what_would_fail_every_time_ends_the_batch_and_names_model_and_address(
    make: Make, store: Store, status: str
) -> None:
    with ChatServer(faults=lambda prompt, n: status) as server:
        with pytest.raises(ConfigError, match=rf"model tiny at {re.escape(server.url)}.* {status}"):
            make(server.url, concurrency=2).ask([f"p{i}" for i in range(50)], store, "answers")
        assert sum(server.calls.values()) <= 2


def test_retry_after_is_waited_for_by_all_calls(make: Make, store: Store) -> None:
    def first_call(prompt: str, n: int) -> str | None:
        return "429" if n == 0 and prompt == "p0" else None

    with ChatServer(faults=first_call, retry_after="0.6") as server:
        replies = make(server.url, concurrency=1).ask(["p0", "p1"], store, "answers")
    assert [r.text for r in replies] == ["reply to p0", "reply to p1"]
    assert server.times[1] - server.times[0] >= 0.6


def test_a_server_that_asks_for_too_long_a_wait_is_not_asked_again(make: Make, store: Store) -> None:
    with ChatServer(faults=lambda prompt, n: "429", retry_after="3600") as server:
        reply = make(server.url, max_wait=5.0).ask(["p"], store, "answers")[0]
    assert reply.text is None
    assert server.calls["p"] == 1


def test_a_server_that_is_gone_is_given_up(make: Make, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """After a reply, `give_up_after` requests in a row have to fail."""
    with ChatServer(faults=lambda prompt, n: None if prompt == "p0" else "502") as server:
        llm = make(server.url, retries=0, give_up_after=5, concurrency=1)
        with pytest.raises(MissingError, match=r"5 request\(s\) in a row failed at model .*, the last: .+\. What"):
            llm.ask([f"p{i}" for i in range(500)], store, "answers")
        assert sum(server.calls.values()) == 6
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) == 2
    assert "no reply after 1 attempt(s)" in told[0]
    assert "no reply to 4 more request(s), the last: " in told[1]


def test_a_reply_cut_at_the_token_limit_keeps_its_text_and_is_marked(make: Make, store: Store) -> None:
    with ChatServer(faults=lambda prompt, n: "length") as server:
        first = make(server.url).ask(["p"], store, "answers")[0]
        cached = make(server.url).ask(["p"], store, "answers")[0]
    assert (first.text, first.error) == ("reply to p", CUT)
    assert (cached.text, cached.error, cached.cached) == ("reply to p", CUT, True)
    assert server.calls["p"] == 1


@pytest.mark.parametrize("blank", [" ", "\u200b"])
def test_an_empty_reply_is_asked_again_and_its_cost_counts(make: Make, store: Store, blank: str) -> None:
    with ChatServer(reply=lambda prompt: blank) as server:
        llm = make(server.url, retries=1, price={"prompt": 1e6, "completion": 0}, budget="blank")
        reply = llm.ask(["p"], store, "answers")[0]
        assert server.calls["p"] == 2
    assert (reply.text, reply.usage.cost_usd) == (None, 2.0)
    assert "empty reply" in str(reply.error)
    assert llm.spent(store) == 2.0


def test_the_rate_limit_spaces_calls(make: Make, store: Store) -> None:
    with ChatServer() as server:
        llm = make(server.url, requests_per_minute=240)
        began = time.monotonic()
        llm.ask(["a", "b", "c"], store, "answers")
    # Two gaps of a quarter of a second. From before the first call: a busy machine may bring that one late.
    assert time.monotonic() - began > 0.5


def test_two_processes_that_ask_the_same_pay_once(make: Make, store: Store, tmp_path: Path) -> None:
    with ChatServer(delay=0.05) as server:
        llm = make(server.url)
        prompts = [f"p{i}" for i in range(30)]
        script = tmp_path / "ask.py"
        script.write_text(_ASK)
        other = subprocess.Popen([sys.executable, script, _job(llm, prompts, store)], stdout=subprocess.PIPE)
        while not server.calls and other.poll() is None:
            time.sleep(0.01)
        replies = llm.ask(prompts, store, "answers")
        assert other.wait() == 0
    assert all(r.text == f"reply to {p}" for r, p in zip(replies, prompts, strict=True))
    assert set(server.whole.values()) == {1}
    assert any(r.cached for r in replies)


_ASK = """
import json, sys
from pathlib import Path
from ragauge.llms.chat import ChatLLM
from ragauge.store import Store
job = json.loads(sys.argv[1])
replies = ChatLLM(**job["llm"]).ask(job["prompts"], Store(Path(job["store"])), "answers")
print(json.dumps([reply.text for reply in replies]))
"""


def _job(llm: ChatLLM, prompts: list[str], store: Store) -> str:
    fields = {"chat": llm.chat, "backoff": 0.01, "concurrency": 4, "api_key_env": llm.api_key_env}
    return json.dumps({"llm": fields, "prompts": prompts, "store": str(store.root)})


@pytest.mark.slow
def test_a_kill_at_any_moment_loses_only_the_calls_in_flight(make: Make, store: Store, tmp_path: Path) -> None:
    prompts = [f"p{i}" for i in range(60)]
    script = tmp_path / "ask.py"
    script.write_text(_ASK)
    with ChatServer(delay=0.01) as server:
        llm = make(server.url)
        job = _job(llm, prompts, store)
        for kill_at in (1, 14, 27, 41):  # calls that the server has seen
            calls_of_finished = {p: server.calls[p] for p in _finished(llm, prompts, store)}
            command = Command(tmp_path, job, program=str(script))
            while sum(server.calls.values()) < kill_at and command.runs:
                time.sleep(0.002)
            command.kill()
            # No finished call was sent again.
            assert calls_of_finished == {p: server.calls[p] for p in calls_of_finished}
        last = Command(tmp_path, job, program=str(script)).wait()
    assert last.returncode == 0, last.stderr
    assert json.loads(last.stdout) == [f"reply to {p}" for p in prompts]
    assert len(open_ledger(store.root / "ledger.db")) == 60
    assert sum(server.calls.values()) <= 60 + 4 * 4  # four kills, four calls in flight


def _finished(llm: ChatLLM, prompts: list[str], store: Store) -> list[str]:
    replies = llm.known(prompts, store)
    return [p for p, reply in zip(prompts, replies, strict=True) if reply is not None]


# --- money --------------------------------------------------------------------------------------------


def test_needs_tell_which_requests_the_ledger_answers_and_what_the_others_would_cost(store: Store) -> None:
    llm = fake("one", price={"prompt": 1.0, "completion": 2.0}, expected_tokens=10)
    llm.ask(["known"], store, "answers")
    prompts = ["known", "x" * 400, "x" * 400, "y" * 41]
    rows = llm.needs_of(prompts, store)
    assert rows["known"].tolist() == [True, False, False, False]
    assert rows["exact"].all()
    assert rows["key"].nunique() == 3
    assert rows["prompt_tokens"].tolist() == [2, 100, 100, 11]
    assert rows["completion_tokens"].tolist() == [10] * 4
    assert rows["cost_usd"].tolist() == pytest.approx([(n + 20) / 1e6 for n in (2, 100, 100, 11)])
    assert not llm.needs_of(["known"], store, salt="again")["known"].any()
    assert [reply and (reply.text, reply.cached) for reply in llm.known(prompts, store)] == [
        ("one", True), None, None, None,
    ]  # fmt: skip
    assert len(open_ledger(store.root / "ledger.db")) == 1


def test_the_cost_limit_stops_before_it_is_exceeded_and_keeps_what_was_paid(make: Make, store: Store) -> None:
    prompts = [f"prompt {i}" for i in range(40)]
    # A call can cost 64 + 9 prompt tokens and 10 completion tokens, 83 USD; each costs 2 + 4.
    price = {"prompt": 1e6, "completion": 1e6}
    with ChatServer() as server:
        limit = "max_tokens" if "Open" in make(server.url).chat["_target_"] else "num_predict"
        llm = make(server.url, {limit: 10}, price=price, budget="sweep 1", max_cost_usd=200.0)
        with pytest.raises(GateError, match="max_cost_usd"):
            llm.ask(prompts, store, "answers")
        asked = sum(server.calls.values())
        assert llm.spent(store) == asked * 6
        assert 200 - 83 < asked * 6 <= 200
        with pytest.raises(GateError):  # the budget goes on in a rerun
            llm.ask(prompts, store, "answers")
        assert sum(server.calls.values()) == asked
        rest = make(server.url, {limit: 10}, budget="sweep 2").ask(prompts, store, "answers")
        assert sum(reply.cached for reply in rest) == asked
        assert set(server.calls.values()) == {1}


def test_a_full_disk_ends_the_batch_in_one_line_and_pays_nothing_again(
    make: Make, store: Store, tmp_path: Path
) -> None:
    """On a file system of its own of 1 MB; skipped where none may be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    ledger = None
    try:
        with ChatServer(delay=0.02, reply=lambda prompt: f"reply to {prompt[:9]}") as server:
            llm = make(server.url, ledger=str(disk / "ledger.db"), price={"prompt": 1e6, "completion": 0})
            prompts = [f"{i:09d}" + " long" * 2000 for i in range(200)]
            ledger = llm._ledger(store)
            with pytest.raises(RagaugeError, match=r"no space left for .*ledger\.db") as caught:
                llm.ask(prompts, store, "answers")
            assert "\n" not in str(caught.value)
            asked = sum(server.calls.values())
            assert 4 < asked < 100
            with pytest.raises(RagaugeError, match="no space left"):  # the next job of the process
                llm.ask(prompts, store, "answers")
            assert sum(server.calls.values()) == asked
            more = ["mount", "-o", "remount,size=64m", str(disk)]
            subprocess.run(more, check=True)
            assert [r.text for r in llm.ask(prompts, store, "answers")] == [f"reply to {p[:9]}" for p in prompts]
            assert set(server.calls.values()) == {1}
            assert llm.spent(store) == 200 * 2001
    finally:
        if ledger is not None:
            ledger.close()
        subprocess.run(["umount", "-l", str(disk)], check=False)


# --- keys ---------------------------------------------------------------------------------------------

SECRET = "sk-planted-0123456789abcdef"


def test_a_key_is_sent_and_kept_nowhere(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RAGAUGE_API_KEY", SECRET)
    caplog.set_level(logging.DEBUG)
    # The server repeats the Authorization header in its errors.
    with ChatServer(faults=lambda prompt, n: "500" if prompt == "bad" else None) as server:
        chat = {"_target_": "langchain_openai.ChatOpenAI", "model": "m", "base_url": f"{server.url}/v1"}
        llm = ChatLLM(chat=chat, api_key_env="RAGAUGE_API_KEY", retries=1, backoff=0.01)
        replies = llm.ask(["good", "bad"], store, "answers")
        server.faults = lambda prompt, n: "401"
        with pytest.raises(ConfigError) as caught:
            llm.ask(["other"], store, "answers")
    assert f"Bearer {SECRET}" in server.headers[0].values()
    assert replies[1].error is not None
    places = [str(replies), str(caught.value), caplog.text, repr(llm), str(identity.identity(llm))]
    places += [f.read_bytes().decode("latin-1") for f in store.root.rglob("*") if f.is_file()]
    assert not any(SECRET in place for place in places)


def test_a_local_server_is_not_sent_the_key_of_another_service(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.delenv("RAGAUGE_API_KEY", raising=False)
    with ChatServer() as server:
        chat = {"_target_": "langchain_openai.ChatOpenAI", "model": "m", "base_url": f"{server.url}/v1"}
        ChatLLM(chat=chat, api_key_env="RAGAUGE_API_KEY").ask(["p"], store, "answers")
    assert "Bearer EMPTY" in server.headers[0].values()


def test_a_service_without_its_key_is_an_error_before_any_call(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    llm = ChatLLM(chat={"_target_": "langchain_openai.ChatOpenAI", "model": "m"}, api_key_env="OPENAI_API_KEY")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        llm.ask(["p"], store, "answers")


@pytest.mark.parametrize(
    "chat",
    [
        {"api_key": "abc"},
        {"openai_api_key": "abc"},
        {"model_kwargs": {"extra_headers": {"Authorization": "abc"}}},
        {"model": SECRET},
        {"user": "http://me:word@host/v1"},
        {"stop": ["x", {"password": "abc"}]},
    ],
)
def test_a_key_in_the_config_is_refused_and_not_repeated(chat: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="environment") as caught:
        ChatLLM(chat={"_target_": FAKE, **chat})
    assert not re.search("abc|:word|planted", str(caught.value))


def test_redact_removes_values_of_the_environment_and_forms_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "value-of-the-key")
    text = f"value-of-the-key {SECRET} Bearer tok http://u:p@host/ max_tokens 5"
    assert redact(text) == "*** *** Bearer *** http://***@host/ max_tokens 5"


# --- config -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"chat": {"model": "m"}}, "_target_"),
        ({"chat": {"_target_": FAKE, "model": object()}}, "plain values"),
        ({"concurrency": 0}, "concurrency: 0"),
        ({"retries": -1}, "retries: -1"),
        ({"timeout": 0}, "timeout: 0"),
        ({"timeout": "soon"}, "timeout: 'soon'"),
        ({"requests_per_minute": 0}, "requests_per_minute: 0"),
        ({"backoff": -1}, "backoff: -1"),
        ({"price": {"prompt": 1}}, "price"),
        ({"price": {"prompt": 1, "completion": "x"}}, "price"),
        ({"max_cost_usd": 5}, "needs price"),
        ({"max_cost_usd": -1, "price": {"prompt": 1, "completion": 1}}, "max_cost_usd: -1"),
        ({"give_up_after": 0}, "give_up_after: 0"),
        ({"max_wait": -1}, "max_wait: -1"),
        ({"expected_tokens": -1}, "expected_tokens: -1"),
    ],
)
def test_values_out_of_range_are_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ChatLLM(**{"chat": {"_target_": FAKE, "responses": ["x"]}, **fields})


@pytest.mark.parametrize(
    ("chat", "says"),
    [
        ({"_target_": "no_such_module.Chat"}, "chat._target_='no_such_module.Chat': there is no such class"),
        ({"_target_": "json.JSONDecoder"}, "not a LangChain chat model"),
        ({"_target_": "langchain_ollama.ChatOllama", "model": "m", "temprature": 0}, "temprature"),
        ({"_target_": "langchain_ollama.ChatOllama"}, "ChatOllama cannot be made"),
    ],
)
def test_a_model_that_cannot_be_made_is_an_error_before_any_call(store: Store, chat: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ChatLLM(chat=chat).ask(["p"], store, "answers")


def test_mappings_and_sequences_of_any_kind_are_plain_in_the_settings() -> None:
    given = MappingProxyType(
        {
            "_target_": FAKE,
            "responses": ("x",),
            "metadata": MappingProxyType({"a": [{"b": (1, None)}], 7: 0.5}),
        }
    )
    found = ChatLLM(chat=given).chat
    assert found == {"_target_": FAKE, "responses": ["x"], "metadata": {"a": [{"b": [1, None]}], "7": 0.5}}
    assert json.dumps(found)


def test_what_a_chat_model_is_where_nothing_is_set() -> None:
    chat = {"_target_": FAKE, "responses": ["x"]}
    assert identity.identity(ChatLLM(chat=chat)) == {"component": "chat", "version": 1, "chat": chat}
    unset = ("requests_per_minute", "api_key_env", "price", "max_cost_usd", "budget", "ledger")
    assert vars(ChatLLM(chat=chat)) == {
        "chat": chat, "concurrency": 4, "timeout": 120.0, "retries": 5, "backoff": 1.0, "max_wait": 300.0,
        "give_up_after": 25, "expected_tokens": 60, "submit": "now", "submit_wait": True, "submit_poll": 30.0,
        "submit_price_factor": 0.5, "language": "english", "schema": "none", **dict.fromkeys((*unset, "prices")),
    }  # fmt: skip
    ends = {"concurrency": 1, "retries": 0, "backoff": 0, "give_up_after": 1, "expected_tokens": 0, "max_wait": 0.5}
    assert ChatLLM(chat=chat, **ends)  # type: ignore[arg-type]


def test_the_identity_leaves_out_how_the_model_is_reached() -> None:
    one = fake("x", retries=1)
    other = ChatLLM(
        chat={"_target_": FAKE, "responses": ["x"], "base_url": "http://elsewhere", "num_thread": 3},
        timeout=1.0,
        price={"prompt": 1, "completion": 1},
        ledger="elsewhere.db",
    )
    assert identity.identity(one) == identity.identity(other)
    assert identity.identity(one) != identity.identity(fake("y"))
    assert json.dumps(identity.identity(one))


def test_importing_loads_no_client() -> None:
    heavy = "langchain_core langchain_openai langchain_ollama openai ollama sqlalchemy sklearn torch"
    code = "import sys, ragauge.answering, ragauge.answering.judges\n"
    code += "print(set(sys.argv[1:]) & set(sys.modules))"
    command = [sys.executable, "-c", code, *heavy.split()]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_ledger_is_the_model_s_own_else_that_of_the_environment_else_the_store_s(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAGAUGE_LEDGER", raising=False)
    assert fake("x")._ledger(store).where == str(store.root / "ledger.db")
    monkeypatch.setenv("RAGAUGE_LEDGER", str(tmp_path / "all.db"))
    assert fake("x")._ledger(store).where == str(tmp_path / "all.db")
    assert fake("x", ledger=str(tmp_path / "own.db"))._ledger(store).where == str(tmp_path / "own.db")
