"""Servers of batches whose answers are odd, packed, slow or endless: nothing is sent or paid twice, nothing is lost."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import json
import random
import sqlite3
import sys
import time
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import stand_in_anthropic
from anthropic_server import AnthropicServer
from batch_server import BatchServer, Endless
from dying import Killed, dying
from ragauge.contract.errors import ConfigError, MissingError, RagaugeError, WaitingError
from ragauge.llms.chat import ChatLLM
from ragauge.plugins.batches import collecting, table
from ragauge.plugins.batches.openai_api import OpenAIBatches
from ragauge.store import Store

PRICE = {"prompt": 1.0, "completion": 2.0}
PROMPTS = [f"question number {i}" for i in range(7)]
REPLIES = [f"reply to {prompt}" for prompt in PROMPTS]


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCH_TEST_KEY", "unused")
    if importlib.util.find_spec("langchain_anthropic") is None:
        monkeypatch.setitem(sys.modules, "langchain_anthropic", stand_in_anthropic)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def model(server: BatchServer, **more: Any) -> ChatLLM:
    if isinstance(server, AnthropicServer):
        chat = {"_target_": "langchain_anthropic.ChatAnthropic", "base_url": server.url}
    else:
        chat = {"_target_": "langchain_openai.ChatOpenAI", "base_url": f"{server.url}/v1"}
    given = {"submit": "batch", "submit_poll": 0.01, "timeout": 30.0, "backoff": 0.01, "retries": 1, "price": PRICE,
             "api_key_env": "BATCH_TEST_KEY", "budget": "b", **more}  # fmt: skip
    return ChatLLM({**chat, "model": "m", "max_tokens": 100}, **given)


def texts(llm: ChatLLM, store: Store) -> list[str | None]:
    return [reply.text for reply in llm.ask(PROMPTS, store, "answers")]


def open_rows(store: Store) -> int:
    with sqlite3.connect(store.root / "ledger.db") as ledger:
        return int(ledger.execute("SELECT COUNT(*) FROM claims WHERE batch <> ''").fetchone()[0])


Odd = Callable[[Any], Any]


def says(**values: Any) -> Odd:
    """The answer with these values in place of its own; those of ... are left out."""
    return lambda answer: {key: value for key, value in (answer | values).items() if value is not ...}


def is_sent(value: Any) -> Odd:
    return lambda _: value


HTML = b"<html>Please log in</html>"
# Answers of the steps of OpenAI's API; None where the first run has all its replies in spite of them.
OPENAI: dict[str, tuple[str, Odd, type[RagaugeError] | None]] = {
    "an upload that is a list": ("upload", is_sent([1, 2]), MissingError),
    "an upload that is a page": ("upload", is_sent(HTML), MissingError),
    "an upload that is empty": ("upload", is_sent({}), MissingError),
    "an upload whose id is null": ("upload", says(id=None), MissingError),
    "an upload whose id is a number": ("upload", says(id=5), MissingError),
    "a creation without an id": ("create", says(id=...), None),
    "a creation whose id is null": ("create", says(id=None), None),
    "a creation whose id is blank": ("create", says(id=" "), None),
    "a creation whose id has no end": ("create", says(id="x" * 100_000), None),
    "a creation that is a page": ("create", is_sent(HTML), None),
    "a creation that is a list": ("create", is_sent([1]), None),
    "a creation that is empty": ("create", is_sent(b""), None),
    "a state of null": ("look", says(status=None), WaitingError),
    "no state": ("look", says(status=...), WaitingError),
    "a state that is a number": ("look", says(status=7), WaitingError),
    "queued": ("look", says(status="queued"), WaitingError),
    "paused": ("look", says(status="paused"), WaitingError),
    "IN_PROGRESS": ("look", says(status="IN_PROGRESS"), WaitingError),
    "done": ("look", says(status="done"), WaitingError),
    "canceled, with one l": ("look", says(status="canceled"), WaitingError),
    "a state of 10,000 letters": ("look", says(status="x" * 10_000), WaitingError),
    "COMPLETED": ("look", says(status="COMPLETED"), None),
    "a look that is a list": ("look", is_sent([1]), MissingError),
    "a look that is a page": ("look", is_sent(HTML), MissingError),
    "a look that is nested": ("look", is_sent(b"[" * 100_000), MissingError),
    "counts that are none": ("look", says(request_counts=[1]), None),
    "counts that are words": ("look", says(request_counts={"total": "many", "completed": None, "failed": -1}), None),
    "completed without files": ("look", says(output_file_id=None, error_file_id=None), WaitingError),
    "a file whose id is a list": ("look", says(output_file_id=["x"]), MissingError),
    "replies that are a page": ("content", is_sent(HTML), MissingError),
    "replies that are empty": ("content", is_sent(b""), MissingError),
    "replies that are no objects": ("content", is_sent(b"[1]\n" * 7), MissingError),
    "replies twice, the second ones others": (
        "content", lambda data: data + data.replace(b"reply to", b"another reply to"), None,
    ),
    "odd lines before the replies": ("content", lambda data: b'[1]\n{"custom_id": 5}\n\n\xff\n' + data, None),
}  # fmt: skip
# Answers to the list, which is read where the creation got none.
LISTS: dict[str, tuple[Odd, type[RagaugeError] | None]] = {
    "a list that is empty JSON": (is_sent({}), MissingError),
    "a list that is a page": (is_sent(HTML), MissingError),
    "a list whose data are null": (says(data=None), MissingError),
    "a list of words beside ours": (lambda page: {**page, "data": ["x", None, 5, *page["data"]]}, None),
    "a list that has always more": (lambda page: {**page, "data": [], "has_more": True}, MissingError),
    "a list that repeats a page": (lambda page: {**page, "data": [{"id": "x"}], "has_more": True}, MissingError),
}
ANTHROPIC: dict[str, tuple[str, Odd, type[RagaugeError] | None]] = {
    "a creation without an id": ("create", says(id=...), None),
    "a creation that is a page": ("create", is_sent(HTML), None),
    "a state of null": ("look", says(processing_status=None), WaitingError),
    "paused": ("look", says(processing_status="paused"), WaitingError),
    "ENDED": ("look", says(processing_status="ENDED"), None),
    "an end without counts": ("look", says(request_counts=...), MissingError),
    "an end whose counts are null": ("look", says(request_counts={"succeeded": None}), MissingError),
    "a look that is a list": ("look", is_sent([1]), MissingError),
    "results that are a page": ("content", is_sent(HTML), MissingError),
    "an odd line before the results": ("content", lambda data: b'{"custom_id": []}\n' + data, None),
    "SUCCEEDED": ("content", lambda data: data.replace(b'"succeeded"', b'"SUCCEEDED"'), None),
}
STEPS: list[tuple[Any, str]] = [
    (table, "enter"), (table, "mark"), (OpenAIBatches, "create"), (OpenAIBatches, "look"),
    (OpenAIBatches, "downloaded"), (table, "settle"), (table, "close"),
]  # fmt: skip


def run_until_done(
    server: BatchServer, store: Store, first: type[RagaugeError] | None, odd: dict[str, Odd], timeout: float = 0.7
) -> None:
    """Runs with odd answers, then without; nothing is sent, charged or lost beside what one run would do."""
    llm = model(server, timeout=timeout, submit_wait=False)
    server.odd = odd
    error: RagaugeError | None = None
    for _ in range(20):  # an open batch ends a run that does not wait
        try:
            assert texts(llm, store) == REPLIES
            error = None
        except RagaugeError as raised:
            error = raised
        if not isinstance(error, WaitingError) or first is WaitingError:
            break
        time.sleep(0.1)
    assert (None if error is None else type(error)) is first
    assert "\n" not in str(error)
    assert len(str(error)) < 700
    server.odd = {}
    for _ in range(40):
        with suppress(WaitingError):
            assert texts(llm, store) == REPLIES
            break
        time.sleep(0.1)
    assert server.submitted == Counter(PROMPTS) == server.whole
    assert llm.spent(store) == pytest.approx(server.charged)
    assert open_rows(store) == 0


@pytest.mark.parametrize("name", OPENAI)
def test_an_odd_answer_is_no_reason_to_send_or_pay_twice(store: Store, name: str) -> None:
    step, odd, first = OPENAI[name]
    with BatchServer() as server:
        run_until_done(server, store, first, {step: odd})


@pytest.mark.parametrize("name", LISTS)
def test_an_odd_list_never_says_that_a_batch_was_not_made(store: Store, name: str) -> None:
    odd, first = LISTS[name]
    with BatchServer() as server:
        run_until_done(server, store, first, {"create": says(id=...), "list": odd})


@pytest.mark.parametrize("name", ANTHROPIC)
def test_an_odd_answer_of_message_batches_is_no_reason_to_send_or_pay_twice(store: Store, name: str) -> None:
    step, odd, first = ANTHROPIC[name]
    with AnthropicServer() as server:
        run_until_done(server, store, first, {step: odd}, timeout=10.0)  # none of these is a late answer


@pytest.mark.slow
@pytest.mark.parametrize("name", OPENAI)
def test_an_odd_answer_and_a_kill_send_and_pay_nothing_twice(
    store: Store, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    step, odd, _ = OPENAI[name]
    dice = random.Random(name)
    with BatchServer() as server:
        llm = model(server, timeout=0.7)
        for oddity in ({step: odd}, {}):
            server.odd = oddity
            for _ in range(2):
                (place, killed_at), when = dice.choice(STEPS), dice.choice(["before", "after"])
                with monkeypatch.context() as patched, suppress(Killed, RagaugeError):
                    patched.setattr(table, "AT_ONCE", 4)
                    patched.setattr(collecting, "WINDOW", -3600.0)  # no run waits for ever
                    patched.setattr(place, killed_at, dying(getattr(place, killed_at), dice.randint(1, 2), when, []))
                    texts(llm, store)
                time.sleep(0.05)
        assert texts(llm, store) == REPLIES
    assert server.submitted == Counter(PROMPTS) == server.whole
    assert llm.spent(store) == pytest.approx(server.charged)
    assert open_rows(store) == 0


def test_a_word_that_is_not_known_is_reported_once(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    words = itertools.chain(["queued", "queued", "validating", "queued"], itertools.repeat(None))
    with BatchServer(seconds=0.0) as server:
        server.odd["look"] = lambda answer: answer | ({"status": word} if (word := next(words)) else {})
        assert texts(model(server), store) == REPLIES
    assert server.steps["look"] == 5
    assert caplog.text.count("is 'queued', a word that is not known; it counts as not ended") == 1


def test_a_batch_that_stays_open_beyond_its_window_ends_the_wait(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    with BatchServer(seconds=None) as server:
        with pytest.raises(WaitingError, match=r"the same command collects them$"):
            texts(model(server, submit_wait=False), store)
        monkeypatch.setattr(collecting.time, "time", lambda: now + 26 * 3600)
        with pytest.raises(WaitingError, match="for longer than the 24 hours that a provider has for it") as ended:
            texts(model(server), store)
        server.finish()
        assert texts(model(server), store) == REPLIES
    assert ended.value.exit_code == 5
    assert server.submitted == Counter(PROMPTS)


def test_a_completed_batch_that_never_names_a_file_ends_the_wait(store: Store) -> None:
    with BatchServer() as server:
        server.odd["look"] = says(output_file_id=None, error_file_id=None)
        with pytest.raises(MissingError, match="is completed and names no file of replies; nothing is submitted again"):
            texts(model(server, timeout=0.3), store)
        server.odd = {}
        assert texts(model(server), store) == REPLIES
    assert server.submitted == Counter(PROMPTS)


@pytest.mark.parametrize("at_once", [500, 2])
def test_of_two_lines_on_a_request_the_first_reply_counts_and_the_number_is_reported(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, at_once: int
) -> None:
    monkeypatch.setattr(table, "AT_ONCE", at_once)

    def doubled(data: bytes) -> bytes:
        lines = [json.loads(line) for line in data.splitlines()]
        failed = {**lines[0], "response": None, "error": {"code": "batch_expired", "message": "late"}}
        again = json.loads(data.replace(b"reply to", b"another reply to").splitlines()[1])
        # An error before the reply, and another reply behind it.
        return b"".join(json.dumps(line).encode() + b"\n" for line in [failed, *lines, again])

    with BatchServer() as server:
        server.odd["content"] = doubled
        assert texts(model(server), store) == REPLIES
    assert "2 line(s) of a batch are on a request that has one before; the first reply counts" in caplog.text
    assert server.submitted == Counter(PROMPTS)


def lines_of(server: BatchServer, data: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The replies with the first of them changed."""
    first, *others = data.splitlines()
    return b"\n".join([json.dumps(change(json.loads(first))).encode(), *others]) + b"\n"


ODD_REPLIES: dict[str, tuple[Callable[[dict[str, Any]], Any], bool, bool]] = {
    # the line about a request; whether its text is read; whether it is charged at the most it can cost
    "a status as a word": (lambda one: _with(one, "response", status_code="200"), True, False),
    "no status": (lambda one: _with(one, "response", status_code=None), True, False),
    "a usage that is a list": (lambda one: _with_body(one, usage=[1]), True, True),
    "a usage below 0": (lambda one: _with_body(one, usage={"prompt_tokens": -1, "completion_tokens": 2}), True, True),
    "a response that is a word": (lambda one: {**one, "response": "x"}, False, True),
    "a body that is a list": (lambda one: _with(one, "response", body=[1]), False, True),
    "choices of null": (lambda one: _with_body(one, choices=None), False, True),
    "an error that is a word": (lambda one: {**one, "response": None, "error": "overloaded"}, False, False),
    "a status of 500 as a word": (lambda one: _with(one, "response", status_code="500"), False, False),
}


def _with(one: dict[str, Any], key: str, **values: Any) -> dict[str, Any]:
    return {**one, key: {**one[key], **values}}


def _with_body(one: dict[str, Any], **values: Any) -> dict[str, Any]:
    return _with(one, "response", body={**one["response"]["body"], **values})


@pytest.mark.parametrize("name", ODD_REPLIES)
def test_an_odd_line_is_read_where_it_can_be_and_charged_where_it_may_have_cost(store: Store, name: str) -> None:
    change, is_read, at_most = ODD_REPLIES[name]
    with BatchServer() as server:
        server.odd["content"] = lambda data: lines_of(server, data, change)
        llm = model(server, retries=0)
        found = llm.ask(PROMPTS, store, "answers")
    assert [reply.text for reply in found] == [REPLIES[0] if is_read else None, *REPLIES[1:]]
    usual, most = (3 * 1.0 + 5 * 2.0) / 2e6, ((17 + 64) * 1.0 + 100 * 2.0) / 2e6
    of_first = most if at_most else usual if is_read else 0.0
    assert llm.spent(store) == pytest.approx(6 * usual + of_first)


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"type": "errored", "error": "overloaded"}, "overloaded"),
        ({"type": "errored", "error": {"error": "overloaded"}}, "overloaded"),
        ({"type": "errored", "error": {"type": ["x"]}}, "['x']"),
        ({"type": "errored", "error": {"type": "error", "error": {"type": "not_found_error"}}}, "not_found_error"),
        ({"type": "expired"}, "the request is expired"),
    ],
)
def test_an_odd_result_is_told_by_its_text_and_the_others_are_kept(
    store: Store, result: dict[str, Any], told: str
) -> None:
    with AnthropicServer() as server:
        server.odd["content"] = lambda data: lines_of(server, data, lambda one: {**one, "result": result})
        llm = model(server, retries=0)
        found = llm.ask(PROMPTS, store, "answers")
        assert [reply.text for reply in found] == [*REPLIES[:6], None]
        assert told in str(found[6].error)
        assert llm.spent(store) == pytest.approx(6 * (3 * 1.0 + 5 * 2.0) / 2e6)


@pytest.mark.parametrize("result", [{"type": "unheard of"}, {}, "x", {"type": "succeeded", "message": {"content": 5}}])
def test_a_result_that_says_nothing_known_may_have_been_paid(store: Store, result: Any) -> None:
    with AnthropicServer() as server:
        server.odd["content"] = lambda data: lines_of(server, data, lambda one: {**one, "result": result})
        llm = model(server, retries=0)
        assert texts(llm, store) == [*REPLIES[:6], None]
        most = ((17 + 64) * 1.0 + 100 * 2.0) / 2e6
        assert llm.spent(store) == pytest.approx(6 * (3 * 1.0 + 5 * 2.0) / 2e6 + most)


@functools.cache
def _bomb() -> bytes:
    pack = zlib.compressobj(1, wbits=31)
    return b"".join(pack.compress(b" " * (1 << 20)) for _ in range(256)) + pack.flush()


def _packed() -> Iterator[bytes]:
    yield _bomb()


def _spaces() -> Iterator[bytes]:
    return itertools.repeat(b" " * (1 << 16))


def _lines() -> Iterator[bytes]:
    return itertools.repeat(b'{"custom_id": "nobody"}\n' * 2048)


def _drip() -> Iterator[bytes]:
    while True:
        yield b" "
        time.sleep(0.1)


PACKED = {"Content-Encoding": "gzip"}
ENDLESS = {
    "packed": (Endless(_packed, PACKED), "longer than"),
    "packed error": (Endless(_packed, PACKED, status=500), "attempt|got no answer"),
    "packed twice": (Endless(_packed, {"Content-Encoding": "gzip, gzip"}), "packed as 'gzip, gzip'"),
    "packed by br": (Endless(_packed, {"Content-Encoding": "br"}), "packed as 'br'"),
    "packed by zstd": (Endless(_packed, {"Content-Encoding": "zstd"}), "packed as 'zstd'"),
    "packed by deflate": (Endless(_packed, {"Content-Encoding": "deflate"}), "packed as 'deflate'"),
    "spaces": (Endless(_spaces), "longer than"),
    "spaces, failing": (Endless(_spaces, status=503), "attempt|got no answer"),
    "lines": (Endless(_lines), "longer than 16 MiB|more than [0-9,]+ lines"),
    "drip": (Endless(_drip), "did not come in the time"),
    "drip, failing": (Endless(_drip, status=503), "did not come in the time"),
    "moved": (Endless(_drip, {"Location": "http://127.0.0.1:9/"}, status=303), "sends to http://127.0.0.1:9/"),
}


@pytest.mark.slow
@pytest.mark.parametrize("server_class", [BatchServer, AnthropicServer])
@pytest.mark.parametrize(
    ("step", "name"),
    [
        (step, name)
        for step in ("upload", "create", "look", "list", "content")
        for name in ENDLESS
        if step in ("look", "content") or name in ("packed error", "spaces", "drip", "moved")
    ],
)
def test_no_answer_takes_memory_or_time_beyond_its_limits(
    store: Store, server_class: type[BatchServer], step: str, name: str
) -> None:
    endless, reason = ENDLESS[name]
    if server_class is AnthropicServer and step == "upload":
        pytest.skip("there is nothing to upload")
    with server_class() as server:
        llm = model(server, timeout=1.0 if "drip" in name else 10.0, retries=1 if step in ("create", "list") else 0)
        server.odd[step] = is_sent(endless)
        if step == "list":
            server.lose["create"] = 1
        began = time.monotonic()
        tracemalloc.start()
        if step == "create":  # its batch is listed
            assert texts(llm, store) == REPLIES
            ended = None
        else:
            with pytest.raises(RagaugeError, match=reason) as ended:
                texts(llm, store)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        seconds = time.monotonic() - began
        if ended is not None:
            assert isinstance(ended.value, ConfigError if name == "moved" else MissingError)
            assert "\n" not in str(ended.value)
        assert peak < 80 << 20
        assert seconds < 60
        server.odd = {}
        assert texts(llm, store) == REPLIES
    assert [server.submitted[prompt] for prompt in PROMPTS] == [1] * 7
    assert llm.spent(store) == pytest.approx(server.charged)
