"""Calls by OpenAI's batch API: each request is sent and charged once, whatever happens to process, server and batch."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from batch_server import BatchServer
from chat_server import COMPLAINT, ChatServer, first_of
from dying import Killed, dying
from ragauge.answering.judges import ChatJudge
from ragauge.contract.errors import ConfigError, GateError, MissingError, RagaugeError, WaitingError
from ragauge.contract.workplace import FreshWorkplace
from ragauge.llms.chat import ChatLLM
from ragauge.llms.ledger import Ledger, open_ledger
from ragauge.plugins.batches import table
from ragauge.plugins.batches.command import main
from ragauge.plugins.batches.openai_api import OpenAIBatches
from ragauge.store import Store

PRICE = {"prompt": 1.0, "completion": 2.0}
PROMPTS = [f"question number {i}" for i in range(7)]
# Of every prompt here at half the price: bytes and 64 tokens more, and max_tokens.
BOUND = ((len("question number 0") + 64) * 1.0 + 100 * 2.0) / 2e6


def model(server: ChatServer, **more: Any) -> ChatLLM:
    chat = {"_target_": "langchain_openai.ChatOpenAI", "model": "m", "base_url": f"{server.url}/v1", "max_tokens": 100}
    given = {"submit": "batch", "submit_poll": 0.01, "timeout": 30.0, "backoff": 0.01, "retries": 2, "price": PRICE,
             "api_key_env": "BATCH_TEST_KEY", "budget": "b", **more}  # fmt: skip
    return ChatLLM(chat, **given)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCH_TEST_KEY", "unused")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def texts(llm: ChatLLM, store: Store, prompts: list[str] = PROMPTS, **how: Any) -> list[str | None]:
    return [reply.text for reply in llm.ask(prompts, store, "answers", **how)]


def replies(prompts: list[str] = PROMPTS) -> list[str]:
    return [f"reply to {prompt}" for prompt in prompts]


def open_rows(store: Store) -> tuple[int, int]:
    with sqlite3.connect(store.root / "ledger.db") as ledger:
        tables = ("batches", "claims WHERE batch <> ''")
        counts = [ledger.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables]
    return counts[0], counts[1]


def test_a_stage_is_one_batch_of_the_same_requests_at_half_the_price_and_is_paid_once(store: Store) -> None:
    options = {"response_format": {"type": "json_object"}}
    with BatchServer() as server:
        llm = model(server)
        found = llm.ask([*PROMPTS, PROMPTS[0]], store, "answers", options=options)
        [line, *_] = server.files["file-1"].splitlines()
        assert texts(llm, store, options=options) == replies()
        assert server.steps == Counter(upload=1, create=1, look=1, content=1)
        now = model(server, submit="now", budget="now")
        now.ask(PROMPTS[:1], store, "answers", options=options, salt="again")
    assert [reply.text for reply in found] == replies([*PROMPTS, PROMPTS[0]])
    assert [reply.cached for reply in found] == [False] * 7 + [True]
    assert found[0].usage.cost_usd == pytest.approx((3 * 1.0 + 5 * 2.0) / 2e6)
    assert llm.spent(store) == pytest.approx(server.charged) == pytest.approx(sum(r.usage.cost_usd for r in found))
    assert now.spent(store) == pytest.approx(2 * found[0].usage.cost_usd)
    assert json.loads(line)["body"] == server.bodies[0]
    assert open_rows(store) == (0, 0)


def test_without_waiting_the_job_ends_with_a_code_of_its_own_and_the_same_command_collects(store: Store) -> None:
    with BatchServer(seconds=None) as server:
        llm = model(server, submit_wait=False)
        for _ in range(2):
            with pytest.raises(WaitingError, match=r"7 request\(s\) wait .* batch_1 \(in_progress, 0 of 7\)") as ended:
                llm.ask(PROMPTS, store, "answers")
        assert ended.value.exit_code == 5
        # Another job submits only what stands in no batch, and collects both.
        with pytest.raises(WaitingError, match=r"9 request\(s\) wait in 2 batch"):
            llm.ask([*PROMPTS, "more", "still more"], store, "answers")
        assert set(server.submitted.values()) == {1}
        server.finish()
        assert texts(llm, store, [*PROMPTS, "more"]) == replies([*PROMPTS, "more"])
        assert texts(llm, store, ["still more"]) == replies(["still more"])
    assert server.steps["create"] == 2
    assert llm.spent(store) == pytest.approx(server.charged)


def of_class(name: str) -> Callable[[], tuple[Any, str]]:
    return lambda: (OpenAIBatches, name)


def of_table(name: str) -> Callable[[], tuple[Any, str]]:
    return lambda: (table, name)


STEPS = [
    of_table("enter"), of_class("upload"), of_table("mark"), of_class("create"), of_class("look"),
    of_class("downloaded"), of_table("settle"), of_table("close"),
]  # fmt: skip


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step()[1])
def test_a_kill_at_any_step_sends_nothing_twice_and_loses_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, step: Callable[[], tuple[Any, str]], nth: int, when: str
) -> None:
    place, name = step()
    calls: list[str] = []
    dies = dying(getattr(place, name), nth, when, calls)
    monkeypatch.setattr(table, "AT_ONCE", 4)  # seven requests are two parts
    with BatchServer() as server:
        llm = model(server, timeout=0.7, retries=9)
        with monkeypatch.context() as patched:
            patched.setattr(place, name, dies)
            killed = False
            try:
                texts(llm, store)
            except Killed:
                killed = True
        assert killed or nth > len(calls)
        assert texts(llm, store) == replies()
    assert server.submitted == Counter(PROMPTS) == server.whole
    assert llm.spent(store) == pytest.approx(server.charged)
    assert open_rows(store) == (0, 0)


@pytest.mark.parametrize("step", ["upload", "create", "look", "content", "list"])
def test_an_answer_that_is_lost_makes_no_second_batch(store: Store, step: str) -> None:
    with BatchServer() as server:
        server.lose[step] = 1
        if step == "list":
            server.lose["create"] = 1
        llm = model(server)
        assert texts(llm, store) == replies()
    assert server.steps["create"] == 1
    assert llm.spent(store) == pytest.approx(server.charged)


def test_a_creation_that_failed_unheard_is_made_again_once_it_is_not_listed(store: Store) -> None:
    with BatchServer() as server:
        server.refuse["create"] = [500]
        llm = model(server, timeout=0.7)
        assert texts(llm, store) == replies()
        server.refuse = {"create": [429], "upload": [503]}
        assert texts(llm, store, ["another"]) == replies(["another"])
        server.refuse = {"create": [500] * 3}
        with pytest.raises(MissingError, match="3 creations of a batch got no answer"):
            texts(llm, store, ["last"])
    assert server.steps["create"] == 2 + 2 + 3
    assert set(server.submitted.values()) == {1}


@pytest.mark.parametrize("fate", ["500", "expired", "empty", "broken", "missing"])
def test_a_request_without_a_reply_is_in_the_next_batch(store: Store, fate: str) -> None:
    def fates(prompt: str, n: int) -> str | None:
        return fate if prompt == PROMPTS[2] and n == 0 else None

    with BatchServer(fate=fates, ends=lambda n: "expired" if (fate, n) == ("expired", 0) else "completed") as server:
        llm = model(server)
        found = llm.ask(PROMPTS, store, "answers")
    assert [reply.text for reply in found] == replies()
    assert server.submitted == Counter(PROMPTS) + Counter([PROMPTS[2]])
    charged = fate in ("empty", "broken", "missing")  # at the most it can cost where nothing was told
    assert found[2].usage.calls == 1 + charged
    lost = {"broken", "missing"} & {fate}
    told = server.charged - (found[0].usage.cost_usd - BOUND if lost else 0)
    assert llm.spent(store) == pytest.approx(told) == pytest.approx(sum(reply.usage.cost_usd for reply in found))


def test_a_request_that_is_refused_for_good_or_too_often_is_a_missing_answer(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    fates = {PROMPTS[0]: "400", PROMPTS[1]: "500"}
    with BatchServer(fate=lambda prompt, n: fates.get(prompt)) as server:
        llm = model(server)
        found = llm.ask([*PROMPTS, "\ud800"], store, "answers")
    assert [reply.text for reply in found] == [None, None, *replies()[2:], None]
    assert re.search(r"1 attempt\(s\) by batch .* status 400: refused: 400", str(found[0].error))
    assert "3 attempt(s) by batch" in str(found[1].error)
    assert "UnicodeEncodeError" in str(found[-1].error)
    assert (server.submitted[PROMPTS[0]], server.submitted[PROMPTS[1]], server.submitted[PROMPTS[2]]) == (1, 3, 1)
    assert "no reply to 1 request(s) of a batch, the last: status 500" in caplog.text
    assert llm.spent(store) == pytest.approx(server.charged)


def test_replies_twice_unknown_ids_and_unknown_usage_are_counted_and_told(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    fates = {PROMPTS[0]: "twice", PROMPTS[1]: "strange", PROMPTS[2]: "untold"}
    with BatchServer(fate=lambda prompt, n: fates.get(prompt)) as server:
        llm = model(server)
        assert texts(llm, store) == replies()
    assert "1 line(s) of a batch name no request of it" in caplog.text
    assert "1 reply(s) of a batch told no usage" in caplog.text
    usual = (3 * 1.0 + 5 * 2.0) / 2e6
    assert llm.spent(store) == pytest.approx(6 * usual + BOUND)


def test_a_failed_batch_costs_nothing_and_is_submitted_again_by_the_next_run(store: Store) -> None:
    with BatchServer(ends=lambda n: "completed" if n else "failed") as server:
        llm = model(server)
        with pytest.raises(MissingError, match=r"batch_1 .* failed: token_limit_exceeded: Enqueued token limit"):
            llm.ask(PROMPTS, store, "answers")
        assert (llm.spent(store), open_rows(store)) == (0.0, (0, 0))
        assert texts(llm, store) == replies()


def test_a_cancelled_batch_keeps_what_it_has_and_is_not_submitted_again_by_itself(store: Store) -> None:
    def fates(prompt: str, n: int) -> str | None:
        return "cancelled" if n == 0 and prompt > PROMPTS[3] else None

    with BatchServer(ends=lambda n: "completed" if n else "cancelled", fate=fates) as server:
        llm = model(server)
        with pytest.raises(MissingError, match="was cancelled"):
            llm.ask(PROMPTS, store, "answers")
        assert [reply is not None for reply in llm.known(PROMPTS, store)] == [True] * 4 + [False] * 3
        assert texts(llm, store) == replies()
    assert server.submitted == Counter(PROMPTS) + Counter(PROMPTS[4:])
    assert llm.spent(store) == pytest.approx(server.charged)


def test_a_reply_that_cannot_be_read_is_asked_for_once_more_in_a_run(store: Store) -> None:
    def read(reply: Any) -> str | None:
        return None if "number 0" in reply.text else str(reply.text)

    with BatchServer() as server:
        llm = model(server, retries=0)
        found = llm.ask(PROMPTS, store, "verdicts", readers=[read] * len(PROMPTS))
    again = [prompt for prompt in server.submitted if COMPLAINT in prompt]
    assert list(map(first_of, again)) == [PROMPTS[0]]
    assert server.submitted == Counter(PROMPTS) + Counter(again)
    assert [reply.usage.calls for reply in found] == [2, *[1] * 6]
    assert llm.spent(store) == pytest.approx(server.charged) == pytest.approx(sum(r.usage.cost_usd for r in found))


def test_the_cap_counts_what_is_submitted_and_a_batch_is_as_large_as_it_allows(store: Store) -> None:
    with BatchServer(seconds=None) as server:
        waiting = model(server, max_cost_usd=4.5 * BOUND, submit_wait=False)
        with pytest.raises(WaitingError, match=r"4 request\(s\) wait"):
            waiting.ask(PROMPTS, store, "answers")
        now = model(server, submit="now", max_cost_usd=4.5 * BOUND)
        with pytest.raises(GateError, match="max_cost_usd"):  # of the same budget
            now.ask(["another"], store, "answers")
        with pytest.raises(GateError, match="spent or submitted"):
            waiting.ask(["another"], store, "answers")
        server.seconds = 0.0
        server.finish()
        assert texts(model(server, max_cost_usd=4.5 * BOUND), store) == replies()
        assert len(server.batches) == 2
        with pytest.raises(GateError, match="every reply that was paid for is kept"):
            model(server, max_cost_usd=BOUND / 2).ask(["another"], store, "answers")
    assert server.submitted == Counter(PROMPTS)


def test_calls_now_wait_for_what_stands_in_an_open_batch_and_make_the_others(store: Store) -> None:
    with BatchServer(seconds=None) as server:
        with pytest.raises(WaitingError):
            model(server, submit_wait=False).ask(PROMPTS[:3], store, "answers")
        now = model(server, submit="now", submit_wait=False)
        with pytest.raises(WaitingError):
            now.ask(PROMPTS, store, "answers")
        server.finish()
        assert texts(now, store) == replies()
    assert server.submitted == Counter(PROMPTS[:3])
    assert len(server.bodies) == 4
    usual = (3 * 1.0 + 5 * 2.0) / 1e6
    assert now.spent(store) == pytest.approx(3 * usual / 2 + 4 * usual)


def test_threads_that_ask_at_once_share_their_batches(store: Store) -> None:
    with BatchServer(seconds=0.2) as server:
        found: list[list[str | None]] = []
        threads = [threading.Thread(target=lambda: found.append(texts(model(server), store))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [replies()] * 4
    assert server.submitted == Counter(PROMPTS)


def test_a_damaged_ledger_keeps_its_open_batches(store: Store) -> None:
    with BatchServer(seconds=None) as server:
        llm = model(server, submit_wait=False)
        with pytest.raises(WaitingError):
            llm.ask(PROMPTS, store, "answers")
        ledger = open_ledger(store.root / "ledger.db")
        file = store.root / "ledger.db"
        ledger._salvage(file, file.stat().st_ino, None)  # type: ignore[arg-type]
        server.finish()
        assert texts(llm, store) == replies()
    assert server.submitted == Counter(PROMPTS)


def test_open_batches_stand_in_postgresql_too(store: Store, empty_postgres: str) -> None:
    with BatchServer(seconds=None) as server:
        llm = model(server, ledger=empty_postgres, submit_wait=False, max_cost_usd=10 * BOUND)
        with pytest.raises(WaitingError, match=r"7 request\(s\) wait"):
            llm.ask(PROMPTS, store, "answers")
        other = Ledger(empty_postgres)  # as another process sees it
        assert len(other.submitted(other_keys(llm, store))) == 7
        server.finish()
        assert texts(llm, store) == replies()
        assert llm.spent(store) == pytest.approx(server.charged)
        other.close()
    assert server.submitted == Counter(PROMPTS)


def other_keys(llm: ChatLLM, store: Store) -> list[str]:
    return list(llm.needs_of(PROMPTS, store)["key"])


def test_a_dry_run_tells_half_the_price(store: Store) -> None:
    with BatchServer() as server:
        costs = [model(server, **way).needs_of(PROMPTS, store)["cost_usd"].sum()
                 for way in ({"submit": "now"}, {}, {"submit_price_factor": 0.25})]  # fmt: skip
    assert costs[1:] == pytest.approx([costs[0] / 2, costs[0] / 4])


def test_what_has_no_batches_is_refused_in_one_line(store: Store, tmp_path: Path) -> None:
    ollama = {"_target_": "langchain_ollama.ChatOllama", "model": "m"}
    with pytest.raises(ConfigError, match="submit='batch': ChatOllama has no batch API that is known here"):
        ChatLLM(ollama, submit="batch")
    with pytest.raises(ConfigError, match="submit='later': allowed are now, batch"):
        ChatLLM(ollama, submit="later")
    with pytest.raises(ConfigError, match="submit_poll=0: allowed are numbers above 0"):
        ChatLLM(ollama, submit_poll=0)
    with BatchServer() as server:
        server.refuse["upload"] = [404]
        with pytest.raises(ConfigError, match="answers 404: it has no batches API"):
            model(server).ask(PROMPTS, store, "answers")
        server.refuse["create"] = [401]
        with pytest.raises(ConfigError, match="refuses with 401"):
            model(server).ask(PROMPTS, store, "answers")
        with pytest.raises(ConfigError, match="the seconds of an answer are measured with submit=now"):
            model(server).ask(PROMPTS, FreshWorkplace(tmp_path, store.root, "salt"), "answers")
        assert open_rows(store) == (0, 0)
        responses = {"_target_": "langchain_openai.ChatOpenAI", "model": "m", "base_url": f"{server.url}/v1",
                     "use_responses_api": True}  # fmt: skip
        with pytest.raises(ConfigError, match="does not use chat completions"):
            ChatLLM(responses, submit="batch", api_key_env="BATCH_TEST_KEY").ask(PROMPTS, store, "answers")


def test_a_batch_is_collected_at_the_address_that_it_was_submitted_to(store: Store) -> None:
    with BatchServer(seconds=None) as one, BatchServer() as other:
        with pytest.raises(WaitingError):
            model(one, submit_wait=False).ask(PROMPTS, store, "answers")
        with pytest.raises(RagaugeError, match=rf"batch_1 is open at {re.escape(one.url)}/v1, and chat.base_url is"):
            model(other).ask(PROMPTS, store, "answers")
        one.finish()
        assert texts(model(one), store) == replies()


def test_the_command_lists_open_batches_and_forgets_one(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--ledger", str(store.root / "ledger.db")]
    with BatchServer(seconds=None) as server:
        with pytest.raises(WaitingError):
            model(server, submit_wait=False).ask(PROMPTS, store, "answers")
        assert main(["ls", *where]) == 0
        listed = capsys.readouterr().out.splitlines()[1:]
        assert [line.split()[0] for line in listed] == ["batch_1"]
        assert listed[0].split()[-2:] == ["7", f"{7 * BOUND:.4f}"]
        assert main(["forget", "batch_2", *where]) == 2
        assert main(["forget", "batch_1", *where]) == 0
        assert open_rows(store) == (1, 7)
        assert main(["forget", "batch_1", "--yes", *where]) == 0
    assert open_rows(store) == (0, 0)


def test_verdicts_under_several_prompts_are_one_batch(store: Store) -> None:
    topics = pd.DataFrame({"qid": ["1", "2"], "query": ["who?", "when?"], "answer": ["Anna", "1911"]})
    evidence = pd.DataFrame({"qid": ["1"], "text": ["Anna did."], "part": [0]})
    candidates = pd.DataFrame({"qid": ["1", "2"], "candidate": ["a", "a"], "answer": ["Anna", "1912"]})
    with BatchServer(lambda prompt: json.dumps({"label": 5, "reason": "so it is"})) as server:
        given = {name: getattr(model(server), name) for name in ("chat", "submit", "submit_poll", "api_key_env")}
        tools: Any = SimpleNamespace(store=store)
        found = ChatJudge(**given, prompts=["a", "b", "c"]).judge_candidates(topics, evidence, candidates, tools)
    assert found[["label", "label_2", "label_3"]].to_numpy().tolist() == [[5, 5, 5]] * 2
    assert (len(server.batches), sum(server.submitted.values())) == (1, 6)


def test_large_stages_are_several_batches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenAIBatches, "most_requests", 3)
    with BatchServer() as server:
        assert texts(model(server), store) == replies()
    assert len(server.batches) == 3
    assert server.submitted == Counter(PROMPTS)
