"""`rewriter=contextual`, the made conversations that it is tried on, and what chat models read of a history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from ragauge.answering.chat import ChatGenerator
from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.topics import attributes_of
from ragauge.plugins.conversations.contextual import Contextual
from ragauge.plugins.conversations.world import MadeConversations
from ragauge.retrieval.searching import check_queries
from scripted_chat import ScriptedChat, always, unframed

TOPICS = pd.DataFrame(
    {
        "qid": ["a", "b"],
        "query": ["Who founded Orrinford?", "When was it?"],
        "history": [[], ["Who founded Orrinford?", "Tessa Holm"]],
        "standalone_question": ["Who founded Orrinford?", "When was Orrinford founded?"],
    }
)
ALONE, LEANING = TOPICS["query"]


def written(rewriter: Contextual, tools: Tools, chat: ScriptedChat | None = None, **columns: Any) -> list[tuple]:
    topics = TOPICS.assign(**columns)
    found = check_queries(rewriter.rewrite(topics, None, None, replace(tools, chat=chat)), topics, "a test")
    return list(zip(found["qid"], found["search"], found["query"], found["origin"], strict=True))


def test_a_later_question_is_made_to_stand_alone(tools: Tools) -> None:
    first, chat = ("a", 0, ALONE, "question"), always("1. When was Orrinford founded?")
    recorded = ("b", 0, "When was Orrinford founded?", "recorded")
    assert written(Contextual(), tools, chat) == [first, recorded]
    assert not chat.asked
    bare = TOPICS.drop(columns="standalone_question")
    for model, by in ((chat, "llm"), (None, "history")):
        assert Contextual().rewrite(bare, None, None, replace(tools, chat=model))["origin"].tolist() == ["question", by]
    assert written(Contextual(), tools, standalone_question=["x", " "])[1] == ("b", 0, LEANING, "question")
    assert written(Contextual(by="llm"), tools, chat) == [first, ("b", 0, "When was Orrinford founded", "llm")]
    (asked,) = chat.asked  # nothing is asked about a first turn
    assert "User: Who founded Orrinford?\nAssistant: Tessa Holm" in unframed(asked)
    joined = f"{ALONE} {LEANING}"
    assert written(Contextual(by="history"), tools) == [first, ("b", 0, joined, "history")]
    both = written(Contextual(by="history", with_question=True), tools)
    assert both == [first, ("b", 0, LEANING, "question"), ("b", 1, joined.rstrip("?"), "history")]


def test_a_question_that_the_llm_could_not_rewrite_is_searched(tools: Tools) -> None:
    def first_only(prompt: str, times: int) -> str | None:
        return "Where was Tessa Holm born?" if "born" in prompt else None

    histories = [["Who?", "Tessa Holm"], ["Who?", "Tessa Holm"]]
    found = written(Contextual(by="llm"), tools, ScriptedChat(first_only), query=["Where was she born?", LEANING],
                    history=histories)  # fmt: skip
    assert found == [("a", 0, "Where was Tessa Holm born", "llm"), ("b", 0, LEANING, "failed")]


def test_what_cannot_be_rewritten_is_told_in_one_line(tools: Tools, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigError, match=r"rewriter\.by='rules'.*auto, recorded, llm, history"):
        Contextual(by="rules")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="needs an llm that is a chat model"):
        written(Contextual(by="llm"), tools)
    with pytest.raises(DataError, match="the topics have no column standalone_question"):
        Contextual(by="recorded").rewrite(TOPICS.drop(columns="standalone_question"), None, None, tools)
    uses = {by: (set(one.uses), one.needs_chat) for by in ("auto", "recorded", "llm", "history")
            for one in [Contextual(by=by)]}  # fmt: skip
    chat = {"chat"}
    assert uses == {"auto": (chat, False), "recorded": (set(), False), "llm": (chat, True), "history": (set(), False)}
    assert Contextual(by="llm").describe(tools) == {"by": "llm"}
    single = TOPICS[["qid", "query"]]
    assert Contextual().rewrite(single, None, None, tools)["origin"].tolist() == ["question"] * 2
    assert "no topic has earlier turns" in caplog.text


def test_made_conversations_name_a_town_first_and_lean_on_it_later() -> None:
    data = MadeConversations(conversations=5, turns=6, towns=9).load()
    for name in ("docs", "topics", "evidence"):
        frames.check(name, getattr(data, name))
    topics = data.topics
    assert attributes_of(topics) == ["conversation", "turn", "standalone_question"]
    assert topics["turn"].tolist() == [1, 2, 3, 4, 5, 6] * 5
    names_town = topics["query"] == topics["standalone_question"]
    assert topics["turn"][names_town].unique().tolist() == [1, 4]
    texts = data.docs.set_index("docno")["text"]
    for docno, text, question, answer in zip(
        data.evidence["docno"], data.evidence["text"], topics["standalone_question"], topics["answer"], strict=True
    ):
        assert text in texts[docno]
        assert docno in question
        assert answer in text
    last = topics.iloc[5]
    assert last["history"] == [text for row in topics.iloc[:5].itertuples() for text in (row.query, row.answer)]
    # The same bytes as ever: else raise the `version`.
    worlds = [one.load() for one in (MadeConversations(), MadeConversations(conversations=7, turns=7, towns=4, seed=2))]
    digests = [frames.content_digest(frame)[:12] for of in worlds for frame in (of.docs, of.topics, of.evidence)]
    assert " ".join(digests) == "32194af1b45c 9efd537485a2 de1f758c35a4 390b4996641e 25287f971666 b494614264e9"
    MadeConversations(conversations=2, turns=2, towns=4, seed=0)
    MadeConversations(conversations=1000, turns=8, towns=200)
    for key, wrong in (("conversations", 1), ("conversations", 1001), ("turns", 1), ("turns", 9), ("towns", 3),
                       ("towns", 201), ("seed", -1)):  # fmt: skip
        with pytest.raises(ConfigError, match=rf"dataset\.{key}={wrong}: allowed are"):
            MadeConversations(**{key: wrong})


def test_a_chat_model_reads_what_came_before_and_other_prompts_stay() -> None:
    llm = ChatGenerator(chat={"_target_": "langchain_ollama.ChatOllama", "model": "m"})
    contexts = pd.DataFrame({"qid": ["a", "b"], "n_tokens": 9, "text": ["A document.", ""]})
    with_history, without = (llm.prompts(one, contexts) for one in (TOPICS, TOPICS[["qid", "query"]]))
    assert with_history[0] == without[0]
    before = f"Earlier in this conversation:\nUser: {ALONE}\nAssistant: Tessa Holm\nNow: {LEANING}"
    assert with_history[1] == without[1].replace(LEANING, before)
