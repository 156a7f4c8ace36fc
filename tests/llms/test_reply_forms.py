"""Replies as servers send them, through the real clients: cut, withheld, with thoughts, with half of a character."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pandas as pd
import pytest

from chat_server import ChatServer
from ragauge.answering.judges import ChatJudge
from ragauge.contract.component import Tools
from ragauge.contract.current_job import run_begins
from ragauge.contract.replies import CUT
from ragauge.llms.chat import ChatLLM
from ragauge.llms.failures import retry_after
from ragauge.store import Store
from raw_replies import Body, chat, said, serving

TOPICS = pd.DataFrame({"qid": ["q0"], "query": ["Who?"], "answer": ["Anna"]})
EVIDENCE = pd.DataFrame({"qid": ["q0"], "part": 0, "docno": None, "text": "Anna built it."})
ANSWERS = pd.DataFrame({"qid": ["q0"], "n_tokens": 1, "answer": "Anna"})


def test_thoughts_in_a_field_of_their_own_are_kept_beside_the_answer(store: Store) -> None:
    with serving(lambda body: (200, said("Paris", reasoning_content="Hm."))) as (url, _):
        llm = ChatLLM(**chat(url))
        for _ in range(2):  # from the server, and from the ledger
            (reply,) = llm.ask(["p"], store, "answers")
            assert (reply.text, reply.thoughts) == ("Paris", "Hm.")


def test_ollamas_thoughts_are_kept_beside_the_answer(store: Store) -> None:
    about = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
    lines = [
        {**about, "message": {"role": "assistant", "content": "", "thinking": "Hm"}, "done": False},
        {**about, "message": {"role": "assistant", "content": "", "thinking": "."}, "done": False},
        {**about, "message": {"role": "assistant", "content": "Paris"}, "done": False},
        {**about, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"},
    ]
    body = "".join(json.dumps(line) + "\n" for line in lines)
    with serving(lambda request: (200, body)) as (url, _):
        model = {"_target_": "langchain_ollama.ChatOllama", "model": "m", "base_url": url}
        (reply,) = ChatLLM(chat=model).ask(["p"], store, "answers")
    assert (reply.text, reply.thoughts) == ("Paris", "Hm.")


@pytest.mark.parametrize(
    ("body", "requests", "error"),
    [
        (said(None, "length", reasoning="Hm"), 2, "the token limit was reached by thoughts, before any text "
         "(chat.max_tokens=9; a reply needs more)"),
        (said("", "content_filter"), 1, "the server withheld the reply: it ended with 'content_filter'"),
        (said("Par", "stop", {"message": "upstream broke"}), 4, "it ended with 'error: upstream broke'"),
        (said("Par", "abort"), 4, "the reply is not whole: it ended with 'abort'"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_missing_and_asked_again_where_that_may_help(
    store: Store, body: Body, requests: int, error: str
) -> None:
    with serving(lambda request: (200, body)) as (url, bodies):
        llm = ChatLLM(**chat(url))
        (reply,) = llm.ask(["p"], store, "answers")
        assert reply.text is None
        assert error in str(reply.error)
        assert len(bodies) == requests
        assert llm.spent(store) == 10 * requests  # all that the server counted
        llm.ask(["p"], store, "answers")
        # In the same run what would end so again is not asked for; a later run asks again.
        assert len(bodies) == (requests if requests < 4 else 2 * requests)
        run_begins()
        llm.ask(["p"], store, "answers")
        assert len(bodies) == (requests + 1 if requests < 4 else 3 * requests)
    assert [body["max_tokens"] for body in bodies[:2]] == [9, 18 if requests == 2 else 9][: len(bodies)]


def test_what_never_has_a_text_is_asked_for_six_times_in_all(store: Store) -> None:
    with serving(lambda request: (200, said(None, "length"))) as (url, bodies):
        for _ in range(8):
            run_begins()
            (reply,) = ChatLLM(**chat(url)).ask(["p"], store, "answers")
            assert "the token limit was reached before any text" in str(reply.error)
    assert len(bodies) == 6


def test_a_verdict_that_is_cut_under_a_schema_is_asked_for_once_more_and_its_usage_counts(
    tools: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(lambda request: (200, said('{"label": 5, "rea', "length"))) as (url, bodies):
        judge = ChatJudge(**chat(url), schema="response_format")
        for _ in range(2):
            found = judge.judge(TOPICS, EVIDENCE, ANSWERS, tools)
    assert [body["max_tokens"] for body in bodies] == [9, 18]
    assert found["status"].tolist() == ["unreadable"]
    assert found["error"][0].startswith(f"{CUT}: ")
    assert judge.spent(tools.store) == 20
    assert "verdicts: 1 of 1 replies were cut at the token limit (chat.max_tokens=9)" in caplog.messages


def test_half_of_a_surrogate_pair_becomes_a_replacement_character(store: Store) -> None:
    whole = json.dumps(said("Paris X")).replace("X", "\\ud83d")
    with serving(lambda request: (200, whole)) as (url, _):
        for _ in range(2):
            (reply,) = ChatLLM(**chat(url)).ask(["p"], store, "answers")
            assert reply.text == "Paris \ufffd"


def test_a_character_whose_halves_ollama_sends_apart_is_whole(store: Store) -> None:
    begins = '{"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": '
    body = f'{begins}"Paris \\ud83d"}}, "done": false}}\n{begins}"\\ude00"}}, "done": true, "done_reason": "stop"}}\n'
    with serving(lambda request: (200, body)) as (url, _):
        model = {"_target_": "langchain_ollama.ChatOllama", "model": "m", "base_url": url}
        (reply,) = ChatLLM(chat=model).ask(["p"], store, "answers")
    assert reply.text == "Paris \U0001f600"


def test_a_streamed_reply_keeps_its_thoughts_apart(store: Store) -> None:
    deltas = [({"role": "assistant", "reasoning_content": "H"}, None), ({"reasoning_content": "m."}, None),
              ({"content": "Paris"}, None), ({}, "length")]  # fmt: skip
    about = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events = [{**about, "choices": [{"index": 0, "delta": d, "finish_reason": end}]} for d, end in deltas]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    with serving(lambda request: (200, body)) as (url, _):
        (reply,) = ChatLLM(**chat(url, streaming=True)).ask(["p"], store, "answers")
    assert (reply.text, reply.thoughts, reply.error) == ("Paris", "Hm.", CUT)


@pytest.mark.parametrize("content", ["Paris", ["Par", "is"], [{"type": "text", "text": "Paris"}], {"text": "Paris"}])
def test_a_text_is_read_in_whatever_form_its_content_comes(store: Store, content: Any) -> None:
    with serving(lambda request: (200, said(content))) as (url, _):
        (reply,) = ChatLLM(**chat(url)).ask(["p"], store, "answers")
    assert reply.text == "Paris"


@pytest.mark.parametrize("knows", ["max_tokens", "max_completion_tokens"])
def test_the_token_limit_is_sent_by_the_name_that_the_server_knows(store: Store, knows: str) -> None:
    other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}[knows]
    error = {
        "object": "error",
        "message": {"detail": [{"loc": ["body", other], "msg": "Extra inputs are not permitted"}]},
    }

    def respond(body: Body) -> tuple[int, Any]:
        return (422, error) if other in body else (200, said("Paris"))

    with serving(respond) as (url, bodies):
        replies = ChatLLM(**chat(url), concurrency=1).ask(["p", "q", "r"], store, "answers")
    assert [reply.text for reply in replies] == ["Paris"] * 3
    assert [body.get(knows) for body in bodies][-3:] == [9, 9, 9]
    assert len(bodies) == 3 + (knows != "max_tokens")  # found out once


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"detail": [{"loc": ["body", "stop"], "msg": "Field required"}]}, "body.stop: Field required"),
        ({"detail": "There was an error"}, "There was an error"),
        ({"error": "context length exceeded (8192)"}, "context length exceeded (8192)"),
        ({"message": "CUDA out of memory"}, "CUDA out of memory"),
        ("prompt is too long: 9000 > 8192", "prompt is too long: 9000 > 8192"),
    ],
)
def test_the_words_of_a_refusal_stand_in_the_error(store: Store, body: Any, words: str) -> None:
    with serving(lambda request: (422, body)) as (url, bodies):
        (reply,) = ChatLLM(**chat(url)).ask(["p"], store, "answers")
    assert words in str(reply.error)
    assert len(bodies) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "2500"}, 2.5),
        ({"retry-after-ms": "2500", "retry-after": "60"}, 2.5),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "3s"}, 3.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, 0.0),
        ({}, 0.0),
    ],
)
def test_the_pause_that_a_server_asks_for(headers: dict[str, str], seconds: float) -> None:
    response = httpx.Response(429, headers=headers)
    error = httpx.HTTPStatusError("no", request=httpx.Request("GET", "http://x"), response=response)
    assert retry_after(error) == seconds


def test_the_ledger_of_an_earlier_version_reads_back_without_thoughts(store: Store) -> None:
    with ChatServer(reply=lambda prompt: "Paris") as server:
        llm = ChatLLM(**chat(server.url))
        llm.ask(["p"], store, "answers")
        ledger = llm._ledger(store)
        (call,) = ledger.each(lambda call, _: call)
        ledger.forget([call.key])
        ledger.add(type(call)(**{**vars(call), "text": "<think>Hm.</think>Par\ud83dis"}))
        (reply,) = llm.ask(["p"], store, "answers")
    assert (reply.text, reply.thoughts, reply.cached) == ("Par\ufffdis", "Hm.", True)
