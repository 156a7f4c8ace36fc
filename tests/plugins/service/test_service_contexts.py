"""`retriever=service`: the contexts of a service as a run, under names that documents are known by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from plugins.service.service_server import ServiceServer
from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.contract.retrieval import BringsTexts, TopicsFailed
from ragauge.llms.chat_use import SharedChat
from ragauge.measures.rankings import document_run
from ragauge.plugins.service.contexts import ServiceContexts
from ragauge.retrieval.passages import name_of, with_brought

CHUNKS = pd.DataFrame(
    {
        "docno": ["a%p0", "a%p1", "b%p0"],
        "text": ["Anna built it.", "It stands.", "Bert left."],
        "parent": ["a", "a", "b"],
        "start": [0, 15, 0],
        "end": [14, 25, 10],
    }
)
TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["Who built it?", "Who left?"]})
PATHS = {"answer": None, "docno": "id", "score": None}


def bring(
    tools: Tools, contexts: Callable[[str], Any], *, top_k: int = 100, faults: Any = None, **response: Any
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The run and the texts of a service that gives these contexts for a question."""
    faults = faults or (lambda question, n: None)
    with ServiceServer(lambda body: {"contexts": contexts(body["question"])}, faults) as server:
        settings = {"url": server.address, "response": {**PATHS, **response}, "retries": 0, "concurrency": 1}
        retriever = ServiceContexts(settings, top_k)
        assert isinstance(retriever, BringsTexts)
        own = replace(tools, chat=SharedChat(retriever.own_chat))
        run, texts = retriever.bring(TOPICS, CHUNKS, own)
    frames.check("run", run)
    frames.check("chunks", with_brought(CHUNKS, texts, "ServiceContexts"))
    return run, texts


def rows(run: pd.DataFrame) -> list[tuple[str, str, float, int]]:
    return list(run[["qid", "docno", "score", "rank"]].itertuples(index=False, name=None))


def test_texts_without_names_are_named_by_what_they_say(tools: Tools) -> None:
    run, texts = bring(tools, lambda q: ["Anna.", "Carl.", "Anna."] if "built" in q else ["Carl."], docno=None)
    anna, carl = name_of("Anna."), name_of("Carl.")
    assert rows(run) == [("q1", anna, 1.0, 0), ("q1", carl, 0.5, 1), ("q2", carl, 1.0, 0)]
    assert dict(texts.itertuples(index=False, name=None)) == {anna: "Anna.", carl: "Carl."}


def test_names_without_texts_are_chunks_or_documents_of_the_corpus(tools: Tools) -> None:
    run, texts = bring(tools, lambda q: [{"id": "b"}, {"id": "a%p1"}, {"id": "a"}] if "built" in q else [])
    assert rows(run) == [("q1", "b%p0", 1.0, 0), ("q1", "a%p1", 0.5, 1), ("q1", "a%p0", 1 / 3, 2)]
    assert texts.empty


def test_names_with_texts_stay_where_they_name_one_text(tools: Tools) -> None:
    given = {
        "Who built it?": [{"id": "z", "text": "Zoe."}, {"id": "a%p0", "text": "Anna built it."}],
        "Who left?": [{"id": "a%p0", "text": "Another."}, {"id": "y", "text": "1"}, {"id": "y", "text": "2"}],
    }
    run, texts = bring(tools, given.__getitem__)
    by_topic = run.groupby("qid")["docno"].agg(list)
    assert by_topic["q1"] == ["z", "a%p0"]
    documents = document_run(run).groupby("qid")["docno"].agg(list)
    assert documents.tolist() == [["z", "a"], ["a", "y"]]  # as measures of rankings see them
    assert len(set(by_topic["q2"])) == 3
    assert not {"a%p0", "y"} & set(by_topic["q2"])
    assert sorted(texts["text"]) == ["1", "2", "Another.", "Zoe."]


def test_a_name_without_a_text_that_nobody_has_is_an_error(tools: Tools) -> None:
    with pytest.raises(DataError, match=r"docno 'c' of topic 'q1' comes without a text.*service\.response\.text"):
        bring(tools, lambda q: [{"id": "c"}])


@pytest.mark.parametrize(("scores", "taken"), [([3, 2.5, 2.5], [3.0, 2.5, 2.5]), ([0.1, 0.2, 0.3], [1, 0.5, 1 / 3])])
def test_scores_are_taken_where_they_fall_and_the_order_is_the_service_s(
    tools: Tools, scores: list[float], taken: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    found = [{"id": name, "text": name, "s": score} for name, score in zip("xyz", scores, strict=True)]
    run, _ = bring(tools, lambda q: found, score="s")
    assert run["docno"].tolist() == ["x", "y", "z"] * 2
    assert run["score"].tolist() == pytest.approx(taken * 2)
    assert ("its order alone is taken" in caplog.text) == (taken != scores)


def test_no_more_than_top_k_contexts_are_kept(tools: Tools) -> None:
    run, texts = bring(tools, lambda q: [f"text {i}" for i in range(9)], top_k=2, docno=None)
    assert run.groupby("qid").size().tolist() == [2, 2]
    assert len(texts) == 2


def test_topics_that_failed_have_no_hits_and_are_told(tools: Tools) -> None:
    def one_fails(question: str, n: int) -> str | None:
        return "500" if "left" in question else None

    with pytest.raises(TopicsFailed) as raised:
        bring(tools, lambda q: ["Anna."], faults=one_fails, docno=None)
    assert raised.value.qids == ["q2"]
    assert raised.value.run["qid"].tolist() == ["q1"]
    assert raised.value.texts["text"].tolist() == ["Anna."]
    assert tools.counted["retriever_failed"] == 1
    with pytest.raises(TopicsFailed) as raised:
        bring(tools, lambda q: ["Anna."], faults=lambda q, n: "html", docno=None)
    frames.check("run", raised.value.run)
    assert (len(raised.value.run), raised.value.qids) == (0, ["q1", "q2"])


@pytest.mark.parametrize(
    ("service", "top_k", "says"),
    [
        ({"response": {"contexts": None}}, 9, "service.response.contexts=None: retriever=service needs"),
        ({"request": {"q": "{question} {context}"}}, 9, "service.request: holds {context}"),
        ({"response": {"contexts": "["}}, 9, "service.response.contexts='.': no JMESPath"),
        ({}, 0, "retriever.top_k=0"),
    ],
)
def test_what_a_retriever_cannot_do_without_is_told_before_any_work(
    service: dict[str, Any], top_k: int, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        ServiceContexts({"url": "http://localhost:1/ask", **service}, top_k)


def test_what_is_sent_and_read_is_the_identity_and_where_is_not() -> None:
    def retriever(*top_k: int, **service: Any) -> dict[str, Any]:
        return identity(ServiceContexts({"url": "http://localhost:1/ask", **service}, *top_k))

    assert retriever() == retriever(timeout=3.0, url="http://localhost:2/ask")
    assert (retriever()["component"], retriever()["top_k"]) == ("service", 100)
    different = [{"version": 2}, {"request": {"q": "{question}"}}, {"response": {"contexts": "c"}}]
    assert all(retriever(**service) != retriever() for service in different)
    assert retriever(5) != retriever()
