"""Jobs over a service: one request serves retriever and llm, counts once, and where it fails is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from chat_server import ChatServer
from plugins.service.service_server import Body, ServiceServer
from ragauge.answering import ChatGenerator, Extractive, NoLLM
from ragauge.contract.answering import AsksForAnswers
from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.identity import identity
from ragauge.experiment.dry_run import needs
from ragauge.experiment.need_sums import added_up, gathered
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.findings.cost import costs_of_parts, per_topic
from ragauge.plugins.service.answers import ServiceAnswers
from ragauge.plugins.service.contexts import ServiceContexts
from ragauge.retrieval.retrievers import NoRetrieval
from small_pipeline import DOCS, TOPICS, SmallPipelines

ANSWERS = {topic["query"]: topic["answer"] for topic in TOPICS}


def rag(body: Body) -> Any:
    """The document that answers, whole, in two pieces; and the answer."""
    question = body["question"]
    number = next(i for i, topic in enumerate(TOPICS) if topic["query"] == question)
    pieces = DOCS[number]["text"].split(". ")
    return {
        "answer": f"{ANSWERS[question]} after {body.get('n', 'all')}",
        "contexts": [{"text": piece, "score": 1.0 - i / 10} for i, piece in enumerate(pieces)],
        "cost": 0.5,
        "got": body.get("context"),
    }


Make = Callable[..., Pipeline]


def both(small: SmallPipelines, server: ServiceServer, n_tokens: int = 8, **fields: Any) -> Pipeline:
    """A job whose retriever and llm are the server's."""
    parts = {name: fields.pop(name) for name in ("llm", "retriever") if name in fields}
    more = {name: fields.pop(name) for name in ("max_missing_share",) if name in fields}
    settings = {"url": server.address, "retries": 0, "backoff": 0.01, **fields}
    usual = {"retriever": ServiceContexts(settings, budget="b"), "llm": ServiceAnswers(settings, budget="b")}
    return small(n_tokens, **{**usual, **parts}, **more)


def test_two_budgets_and_both_parts_take_one_request_a_topic(small: SmallPipelines) -> None:
    with ServiceServer(rag) as server:
        jobs = [both(small, server, n) for n in (4, 16)]
        for job in jobs:
            assert job.answers["status"].tolist() == ["ok"] * 3
        assert server.calls == dict.fromkeys(ANSWERS, 1)
    first, second = jobs
    assert first.answers["answer"].tolist() == [f"{answer} after all" for answer in ANSWERS.values()]
    assert second.contexts["text"].tolist() == [doc["text"].replace(". ", " ") for doc in DOCS[:3]]
    assert first.outcomes["ir_score"].lt(second.outcomes["ir_score"]).any()
    assert second.outcomes["ir_score"].tolist() != [0.0] * 3
    costs = costs_of_parts(first)
    assert (costs["retriever_llm_calls"], costs["retriever_failed"]) == (3, 0)
    assert first.answers["cached"].all()
    assert {"run", "answers"} <= set(first.made)
    assert "run" not in second.made


def test_the_request_s_budget_is_asked_for_again_where_it_stands_in_it(small: SmallPipelines) -> None:
    request = {"question": "{question}", "n": "{n_tokens}"}
    with ServiceServer(rag) as server:
        jobs = [both(small, server, n, request=request) for n in (4, 8)]
        assert [job.answers["answer"][0] for job in jobs] == ["Anna after 4", "Anna after 8"]
        assert server.calls == dict.fromkeys(ANSWERS, 2)
        assert {body["n"] for body in server.bodies} == {4, 8}


def test_an_llm_that_takes_the_context_gets_ours(small: SmallPipelines) -> None:
    request = {"question": "{question}", "context": "{context}"}
    response = {"contexts": None}
    with ServiceServer(rag) as server:
        settings = {"url": server.address, "request": request, "response": response}
        job = small(llm=ServiceAnswers(settings))
        assert job.answers["status"].tolist() == ["ok"] * 3
        got = {body["question"]: body["context"] for body in server.bodies}
        assert [got[topic["query"]] for topic in TOPICS] == job.contexts["text"].tolist()
        assert all(job.contexts["text"])


def test_the_cost_of_a_request_counts_once_in_the_job_and_per_topic(small: SmallPipelines) -> None:
    with ServiceServer(rag) as server:
        job = both(small, server, response={"cost_usd": "cost"})
        assert job.answers["cost_usd"].sum() == 0.0
        assert costs_of_parts(job)["retriever_cost_usd"] == 1.5
        assert per_topic(job)["cost_usd_per_topic"] == pytest.approx(0.5)
        alone = both(small, server, response={"cost_usd": "cost"}, retriever=NoRetrieval(), version=2)
        assert alone.answers["cost_usd"].sum() == 1.5


def test_answers_that_the_ledger_has_are_known_without_asking(small: SmallPipelines) -> None:
    with ServiceServer(rag) as server:
        job = both(small, server, retriever=NoRetrieval(), response={"cost_usd": "cost"})
        llm: Any = job.components.llm
        given = job.frame("topics"), job.contexts, job.store
        assert llm.known_answers(*given)["status"].tolist() == ["missing"] * 3
        assert not server.calls
        asked = job.answers
        known = llm.known_answers(*given)
        assert server.calls == dict.fromkeys(ANSWERS, 1)
    assert known["answer"].tolist() == asked["answer"].tolist()
    assert (known["status"].tolist(), known["cost_usd"].sum()) == (["ok"] * 3, 0.0)


# --- needs --------------------------------------------------------------------------------------------


def test_the_needs_of_retriever_and_llm_are_one_request_a_topic_and_nobody_is_asked(
    small: SmallPipelines,
) -> None:
    with ServiceServer(rag) as server:
        fields = {"cost_per_request": 0.25}
        asked = [needs(both(small, server, n, **fields)) for n in (4, 8)]
        found = added_up(gathered(asked))
        assert (found["retriever"]["calls"], found["llm"]["calls"]) == (3, 0)
        assert (found["retriever"]["cost_usd"], found["llm"]["cost_usd"]) == (0.75, 0.0)
        assert found["retriever"]["calls_guessed"] == 0
        assert added_up(needs(both(small, server, llm=NoLLM())))["retriever"]["calls"] == 3
        assert added_up(needs(both(small, server, llm=Extractive())))["retriever"]["calls"] == 3
        assert isinstance(both(small, server).components.llm, AsksForAnswers)
        assert not server.calls

        part = both(small, server)
        part.components.llm.own_chat.ask(  # type: ignore[attr-defined]
            part.components.retriever.own_chat.prompts(["q1"], [TOPICS[0]["query"]]),  # type: ignore[attr-defined]
            part.store,
            "before",
        )
        assert added_up(needs(both(small, server)))["retriever"]["calls"] == 2
        assert both(small, server).outcomes["answer"].notna().all()
        after = added_up(gathered([needs(both(small, server, n)) for n in (4, 8)]))
        assert sum(counts["calls"] for counts in after.values()) == 0
        assert server.calls == dict.fromkeys(ANSWERS, 1)


def test_a_chat_llm_behind_the_service_s_contexts_is_counted_by_itself(small: SmallPipelines) -> None:
    with ServiceServer(rag) as server, ChatServer() as chat:
        model = {"_target_": "langchain_ollama.ChatOllama", "base_url": chat.url, "model": "tiny"}
        llm = ChatGenerator(chat=model)
        found = added_up(needs(both(small, server, llm=llm)))
        assert (found["retriever"]["calls"], found["llm"]["calls"], found["llm"]["calls_guessed"]) == (
            3,
            3,
            3,
        )
        job = both(small, server, llm=llm)
        assert job.answers["status"].tolist() == ["ok"] * 3
        costs = costs_of_parts(job)
        assert costs["retriever_llm_calls"] == 3
        assert (sum(server.calls.values()), sum(chat.calls.values())) == (3, 3)
        assert sum(counts["calls"] for counts in added_up(needs(job)).values()) == 0


# --- failures -----------------------------------------------------------------------------------------


def test_a_failed_request_is_a_missing_answer_and_is_asked_for_again_by_the_next_run(
    small: SmallPipelines,
) -> None:
    bad, broken = TOPICS[1]["query"], [True]

    def one(question: str, n: int) -> str | None:
        return "html" if question == bad and broken[0] else None

    with ServiceServer(rag, one) as server:
        job = both(small, server)
        outcomes = job.outcomes.set_index("qid")
        assert outcomes["ir_score"].isna().tolist() == [False, True, False]
        assert outcomes["answer"].isna().tolist() == [False, True, False]
        assert "no JSON but text/html" in job.answers["error"][1]
        assert job.answers["status"].tolist() == ["ok", "missing", "ok"]
        assert costs_of_parts(job)["retriever_failed"] == 1
        with pytest.raises(MissingError, match="1 of 3 contexts are missing, more than max_missing_share"):
            _ = both(small, server, max_missing_share=0.1).contexts

        broken[0] = False
        calls = server.calls.copy()
        again = both(small, server, max_missing_share=0.0)
        assert again.outcomes["answer"].notna().all()
        assert again.outcomes["ir_score"].gt(0).all()
        assert dict(server.calls - calls) == {bad: 1}


def test_two_services_share_no_stored_output(small: SmallPipelines) -> None:
    def other(body: Body) -> Any:
        return {**rag(body), "answer": "other", "contexts": ["Nothing of use."]}

    with ServiceServer(rag) as one, ServiceServer(other) as two:
        assert both(small, one).outcomes["ir_score"].gt(0).all()
        assert both(small, two).outcomes["ir_score"].lt(0.5).all()
        assert both(small, two).answers["answer"].tolist() == ["other"] * 3


# --- one by one ---------------------------------------------------------------------------------------


def test_latency_asks_each_topic_once_more_and_not_twice(small: SmallPipelines) -> None:
    latency = pytest.importorskip("ragauge.plugins.latency.measured")
    with ServiceServer(rag, delay=0.02) as server:
        job = both(small, server)
        assert job.outcomes["answer"].notna().all()
        before = sum(server.calls.values())
        asked = needs(job, further=[partial(latency.needs_of_latency, job, 2, 0)])
        assert added_up(asked)["latency, retriever"] == {}
        found = latency.latency(job, 2, seed=0)
        assert sum(server.calls.values()) - before == 3  # two, and one to load by
    assert found["latency_topics"] == 2
    assert found["latency_llm_calls"] == 3
    assert found["latency_run_p50"] >= 0.02
    assert json.dumps(found)


def test_an_answer_path_is_needed_for_answers() -> None:
    assert identity(ServiceAnswers({"url": "http://localhost:1/ask"}))["component"] == "service"
    with pytest.raises(ConfigError, match=r"service\.response\.answer=None: llm=service needs"):
        ServiceAnswers({"url": "http://localhost:1/ask", "response": {"answer": None}})
