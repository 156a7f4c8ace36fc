"""Replies that cannot be read: asked again by a later run, up to a limit, and shown beside the form."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pandas as pd
import pytest

from chat_server import COMPLAINT, ChatServer
from ragauge.answering.chat import ChatGenerator
from ragauge.answering.judges import ChatJudge
from ragauge.contract.component import Tools
from ragauge.contract.current_job import run_begins
from ragauge.contract.replies import ECHO, Reply
from ragauge.contract.usage import Usage
from ragauge.findings.cost import costs_of_replies, notes_of_replies
from ragauge.llms.chat import ChatLLM
from ragauge.llms.chat_use import MOST_UNREAD
from ragauge.llms.ledger import open_ledger
from ragauge.llms.prompts import fill
from ragauge.llms.replies import form_in, shown, together

QIDS = [f"q{i}" for i in range(4)]
TOPICS = pd.DataFrame({"qid": QIDS, "query": QIDS, "answer": "Anna"})
EVIDENCE = pd.DataFrame({"qid": QIDS, "part": 0, "docno": None, "text": "Anna built it."})
ANSWERS = pd.DataFrame({"qid": QIDS, "n_tokens": 1, "answer": "Anna"})
GOOD, BAD = '{"label": 5, "reason": "it is"}', '{"class":5}'
PRICE = {"prompt": 1.0, "completion": 1.0}
SHIPPED = files("ragauge.llms.prompts")


def judge(server: ChatServer, **fields: Any) -> ChatJudge:
    chat = {"_target_": "langchain_ollama.ChatOllama", "model": "judge", "base_url": server.url}
    return ChatJudge(chat=chat, retries=0, backoff=0.0, price=PRICE, budget="b", **fields)


def asked(server: ChatServer) -> list[int]:
    """How often each topic was asked about."""
    return [sum(n for prompt, n in server.calls.items() if qid in prompt) for qid in QIDS]


def complaints(server: ChatServer) -> list[int]:
    """How often each topic was asked about with what was wrong with the reply before."""
    return [sum(n for prompt, n in server.calls.items() if qid in prompt and COMPLAINT in prompt) for qid in QIDS]


def judged(server: ChatServer, tools: Tools, **fields: Any) -> pd.DataFrame:
    return judge(server, **fields).judge(TOPICS, EVIDENCE, ANSWERS, tools)


def form_of(*unreadable: str) -> Any:
    return lambda prompt: BAD if any(qid in prompt for qid in unreadable) else GOOD


def test_a_later_run_asks_exactly_what_could_not_be_read_and_both_replies_are_paid(tools: Tools) -> None:
    with ChatServer(reply=form_of("q1", "q3")) as server:
        first = judged(server, tools)
        assert (asked(server), complaints(server)) == ([1, 2, 1, 2], [0, 1, 0, 1])
        assert first["status"].tolist() == ["ok", "unreadable", "ok", "unreadable"]
        server.reply = form_of()  # the server is mended
        same = judged(server, tools)  # another job of the same run
        assert asked(server) == [1, 2, 1, 2]
        assert same["status"].tolist() == first["status"].tolist()
        run_begins()
        needed = judge(server).needs(TOPICS, EVIDENCE, ANSWERS.assign(candidate="1"), tools)
        assert needed["known"].tolist() == [True, False, True, False]
        later = judged(server, tools)
        assert asked(server) == [1, 3, 1, 3]
        assert later["label"].tolist() == [5, 5, 5, 5]
        assert later["calls"].tolist()[1::2] == [1, 1]
        assert later["cached"].tolist() == [True, False, True, False]
        run_begins()
        assert judged(server, tools)["cached"].all()
        assert asked(server) == [1, 3, 1, 3]
        ledger = open_ledger(tools.store.root / "ledger.db")
        assert len(ledger) == 4 + 2 * 2  # the unreadable ones, too
        honest = sum(len(b["messages"][-1]["content"].split()) for b in server.bodies)
        honest += 4 * len(GOOD.split()) + 4 * len(BAD.split())
        assert ledger.spent("b") == pytest.approx(honest / 1e6)


def test_a_model_that_never_replies_readably_is_asked_six_times_and_no_more(
    tools: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    with ChatServer(reply=form_of("q1")) as server:
        for _ in range(5):
            judged(server, tools)
            run_begins()
    assert asked(server) == [1, MOST_UNREAD, 1, 1]
    assert (
        f'verdicts: 1 of 4 replies could not be read; the first: {BAD}; expected {{"label": <class from 1 to 5>, '
        "\"reason\": \"<one short sentence>\"}; the reply has 'class', and 'label' is read"
    ) in caplog.messages
    assert caplog.messages[-1] == (
        "verdicts: 1 request(s) had 6 unreadable replies each and are not asked again before "
        "`ragauge ledger forget --unreadable`"
    )


def test_no_request_is_sent_twice_in_a_run_and_a_later_run_sends_the_one_with_what_was_wrong(tools: Tools) -> None:
    with ChatServer(reply=form_of("q1")) as server:
        judged(server, tools)
        assert server.calls.most_common(1)[0][1] == 1
        run_begins()
        for _ in range(2):  # two jobs of a run
            judged(server, tools)
    assert (asked(server), complaints(server)) == ([1, 3, 1, 1], [0, 2, 0, 0])


def test_a_reply_that_the_complaint_brings_is_the_reply_of_the_request(tools: Tools) -> None:
    with ChatServer(reply=lambda prompt: GOOD if COMPLAINT in prompt else BAD) as server:
        found = judged(server, tools)
        assert asked(server) == [2] * 4
        run_begins()
        again = judged(server, tools)
        assert asked(server) == [2] * 4
    assert found["label"].tolist() == again["label"].tolist() == [5] * 4
    assert found["calls"].tolist() == [2] * 4
    assert again["cached"].all()


@pytest.mark.parametrize(("kind", "sent"), [("ollama", [9, 18]), ("openai", [9, 18])])
def test_a_reply_that_was_cut_is_asked_for_once_with_twice_the_limit(kind: str, sent: list[int], tools: Tools) -> None:
    faults = lambda prompt, n: None if n else "length"  # noqa: E731
    seen: Counter[str] = Counter()

    def longer(prompt: str) -> str:
        seen[prompt] += 1
        return GOOD if seen[prompt] > 1 else GOOD[:8]

    with ChatServer(reply=longer, faults=faults) as server:
        given = {"_target_": "langchain_ollama.ChatOllama", "base_url": server.url, "num_predict": 9}
        if kind == "openai":
            given = {"_target_": "langchain_openai.ChatOpenAI", "base_url": f"{server.url}/v1", "max_tokens": 9}
        part = ChatJudge(chat={**given, "model": "m"}, api_key_env="NO_KEY", price=PRICE, budget="b", max_cost_usd=1.0)
        found = part.judge(TOPICS, EVIDENCE, ANSWERS, tools)
    limits = [body["options"]["num_predict"] if kind == "ollama" else body["max_tokens"] for body in server.bodies]
    assert sorted(limits) == sorted(sent * 4)
    assert found["label"].tolist() == [5] * 4
    assert asked(server) == [2] * 4
    assert complaints(server) == [0] * 4


def test_a_server_that_refuses_a_schema_is_asked_without_one_from_then_on(
    tools: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with ChatServer(reply=lambda prompt: GOOD) as server:
        server.refuses = "response_format"
        chat = {"_target_": "langchain_openai.ChatOpenAI", "model": "judge", "base_url": f"{server.url}/v1"}
        part = ChatJudge(chat=chat, api_key_env="NO_KEY", schema="response_format", concurrency=1, retries=0)
        found = part.judge(TOPICS, EVIDENCE, ANSWERS, tools)
    assert found["label"].tolist() == [5] * 4
    assert ["response_format" in body for body in server.bodies] == [True, False, False, False, False]
    assert "takes no JSON schema and is asked without one" in caplog.text


def test_a_reply_that_was_kept_as_readable_and_is_not_is_asked_again(tools: Tools) -> None:
    """The ledger may hold it from before its caller became stricter."""
    with ChatServer(reply=lambda prompt: BAD) as server:
        model = ChatLLM(**{k: v for k, v in vars(judge(server)).items() if k in ChatLLM.__dataclass_fields__})
        assert model.ask(["a"], tools.store, "x")[0].text == BAD
        server.reply = lambda prompt: GOOD
        read = [lambda reply: json.loads(reply.text).get("label")]
        assert model.ask(["a"], tools.store, "x", readers=read)[0].text == GOOD
        assert model.ask(["a"], tools.store, "x", readers=read)[0].cached
        assert [prompt.partition(COMPLAINT)[0] for prompt in server.calls] == ["a", "a"]
        words = [len(prompt.split()) for prompt in server.calls]
        assert words[0] == 1
        assert model.spent(tools.store) == pytest.approx((sum(words) + len(BAD.split()) + len(GOOD.split())) / 1e6)
        assert len(open_ledger(tools.store.root / "ledger.db")) == 2


def test_of_two_replies_the_paid_ones_count_or_both_where_none_was_paid_now() -> None:
    known = Reply("a", usage=Usage(3, 1, calls=1, cached_tokens=2), cached=True)
    paid = Reply("b", usage=Usage(5, 2, 0.5, calls=1))
    assert together(known, paid) == paid
    both = replace(known, usage=Usage(6, 2, calls=2, cached_tokens=4))
    assert together(known, known) == both


def test_what_fails_after_an_unreadable_reply_keeps_its_text(tools: Tools) -> None:
    faults = lambda prompt, n: "500" if n else None  # noqa: E731
    with ChatServer(reply=lambda prompt: BAD, faults=faults) as server:
        found = judged(server, tools)
    assert asked(server) == [2] * 4
    assert found["raw"].tolist() == [BAD] * 4
    assert found["status"].tolist() == ["unreadable"] * 4


@pytest.mark.parametrize(
    ("raw", "form", "line"),
    [
        ('{"class":\n5}', '{"label": 1 to 5}',
         '{"class": 5}; expected {"label": 1 to 5}; the reply has \'class\', and \'label\' is read'),
        ("5", '{"label": 1 to 5}', '5; expected {"label": 1 to 5}'),
        ('{"label": 9}', '{"label": 1 to 5}', '{"label": 9}; expected {"label": 1 to 5}'),
        ("five", "", "five"),
        ("x" * 300, "y", "x" * 200 + "...; expected y"),
    ],
)  # fmt: skip
def test_a_reply_stands_beside_the_form(raw: str, form: str, line: str) -> None:
    assert shown(raw, form) == line


def test_the_log_shows_the_form_that_a_prompt_asks_for_and_no_line_of_its_material() -> None:
    prompt = SHIPPED.joinpath("judge_single.txt").read_text(encoding="utf-8")
    values = {"question": "Who?", "reference": "x", "evidence": '{"label": 1}', "answer": '{"label": 1}'}
    form = '{"label": <class from 1 to 5>, "reason": "<one short sentence>"}'
    assert form_in(fill(prompt, **values)) == form_in(prompt) == form
    assert form_in(fill("Reply with a word.\n$documents", documents='{"label": 1}')) == ""
    own = "Examples of the form:\n4, 1, 5\n"
    assert form_in(own) == "4, 1, 5"


def test_a_reply_that_repeats_the_prompt_is_unreadable_by_name_and_is_not_measured(
    tools: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    rule = "Choose the one class that fits best:"
    with ChatServer(reply=lambda prompt: rule if "q1" in prompt else GOOD) as server:
        found = judged(server, tools)
        assert asked(server) == [1, 2, 1, 1]
        again = judged(server, tools)
        assert asked(server) == [1, 2, 1, 1]
    for frame in (found, again):
        assert frame["status"].tolist() == ["ok", "unreadable", "ok", "ok"]
        assert frame["error"].tolist()[1] == f"{ECHO}: {rule}"
        assert costs_of_replies(frame, "judge_")["judge_llm_echoes"] == 1
    assert f"verdicts: 1 of 4 replies could not be read (1 repeat the prompt); the first: {rule}" in caplog.text


def test_an_answer_that_repeats_its_prompt_is_missing_and_a_later_run_asks_again(tools: Tools) -> None:
    contexts = pd.DataFrame({"qid": QIDS, "n_tokens": 9, "text": "Anna built it."})
    chat = {"_target_": "langchain_ollama.ChatOllama", "model": "m"}
    with ChatServer(reply=lambda prompt: prompt if "q2" in prompt else "Anna.") as server:
        llm = ChatGenerator(chat={**chat, "base_url": server.url}, retries=0, backoff=0.0)
        found = llm.answer(TOPICS, contexts, tools)
        run_begins()
        assert llm.known_answers(TOPICS, contexts, tools.store)["answer"].isna().tolist() == [False, False, True, False]
        server.reply = lambda prompt: "Anna."
        later = llm.answer(TOPICS, contexts, tools)
    assert found["status"].tolist() == ["ok", "ok", "missing", "ok"]
    assert found["answer"].isna().tolist() == [False, False, True, False]
    assert found["error"].tolist()[2].startswith(f"{ECHO}: ")
    assert notes_of_replies(costs_of_replies(found), 4) == [
        "Replies that repeat the prompt and count as none: answers 1 of 4"
    ]
    assert later["answer"].tolist() == ["Anna."] * 4
