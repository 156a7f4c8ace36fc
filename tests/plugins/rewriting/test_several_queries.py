"""multi_query, rag_fusion, decompose: what they write, and that mlq is sim with multi_query."""

import itertools
import logging
from dataclasses import replace

import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.component import ChatModel
from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.replies import Reply
from ragauge.plugins.rewriting.multi_query import Decompose, MultiQuery, RagFusion
from ragauge.retrieval.retrievers import MLQ, Sim
from ragauge.retrieval.searching import check_queries, search

QUESTIONS = ["Which is older, Rome or Paris?", "Who built the boat that Anna sold?", "dog", "?!"]
WORDS = ["Rome", "Paris", "older", "boat", "built", "Anna", "sold", "dog", "car", "apple"]
TEXTS = [" ".join(pair) for pair in itertools.combinations(WORDS, 2)]


class Chat(ChatModel):
    """Replies by the first of its words that stands in the prompt; the others time out."""

    def __init__(self, replies):
        self.replies, self.prompts = replies, []

    def ask(self, prompts, store, what, **how):
        self.prompts += prompts
        return [
            next(
                (Reply(text) for word, text in self.replies.items() if word in prompt),
                Reply(None, "timed out"),
            )
            for prompt in prompts
        ]


def topics_of(questions):
    return pd.DataFrame({"qid": [f"q{i}" for i in range(len(questions))], "query": questions}, dtype="str")


def written(rewriter, tools, questions, replies=None):
    topics = topics_of(questions)
    chat = None if replies is None else Chat(replies)
    found = rewriter.rewrite(topics, None, None, replace(tools, chat=chat))
    return check_queries(found, topics, "a test")


def rows(queries):
    return list(zip(queries["qid"], queries["search"], queries["query"], queries["origin"], strict=True))


@pytest.mark.parametrize("union", ["rrf", "first_seen"])
@pytest.mark.parametrize("with_question", [True, False])
@pytest.mark.parametrize("queries", ["rules", "llm"])
def test_sim_with_multi_query_gives_the_run_of_mlq(tools, tmp_path, union, with_question, queries):
    settings = {"queries": queries, "union": union, "with_question": with_question, "rrf_constant": 7}
    chat = Chat({"Rome": "Rome apple\n2. Paris car\nolder\nno more than three", "dog": "Sorry:", "boat": "boat\nsold"})
    asked = replace(tools, chat=chat)
    chunks = pd.DataFrame({"docno": [f"c{i:02}" for i in range(len(TEXTS))], "text": TEXTS}, dtype="str")
    mlq, rewriter, sim = MLQ(top_k=6, **settings), MultiQuery(**settings), Sim(top_k=6)
    topics = topics_of(QUESTIONS)
    sim.build_index(chunks, tmp_path, asked)
    expected = mlq.transformer(chunks, tmp_path, asked)(topics)
    n_asked = len(chat.prompts)
    found = rewriter.rewrite(topics, None, None, asked)
    assert chat.prompts[:n_asked] == chat.prompts[n_asked:]
    run = search(sim, topics, check_queries(found, topics, ""), rewriter, chunks, tmp_path, asked)
    frames.check("run", run)
    assert len(run) > 20
    columns = ["qid", "docno", "score", "rank"]
    pd.testing.assert_frame_equal(run[columns], expected[columns], check_exact=True)


def test_the_queries_of_a_reply_by_hand(tools):
    replies = {"dog": "1. Dogs\n- dog\ncats?\nbirds\nfish", "car": "Here:\n"}
    found = written(MultiQuery(), tools, ["dog", "car", "?"], replies | {"x": "y"})
    assert rows(found) == [
        ("q0", 0, "dog", "question"),
        ("q0", 1, "Dogs", "llm"),
        ("q0", 2, "cats", "llm"),
        ("q1", 0, "car", "failed"),
        ("q2", 0, "?", "question"),
    ]
    assert rows(written(MultiQuery(), tools, ["?"], {})) == [("q0", 0, "?", "question")]
    alone = written(MultiQuery(with_question=False, n_queries=2), tools, ["dog"], replies)
    assert rows(alone) == [("q0", 0, "Dogs", "llm"), ("q0", 1, "dog", "question")]


def test_a_failed_rewrite_is_told_and_counted(tools, caplog):
    with caplog.at_level(logging.WARNING):
        found = written(MultiQuery(with_question=False), tools, ["dog", "car", "boat"], {"dog": "cats"})
    assert found["origin"].tolist() == ["llm", "failed", "failed"]
    assert found["query"].tolist() == ["cats", "car", "boat"]
    assert "multi_query: for 2 of 3 topics the question alone is searched (timed out)" in caplog.text
    with pytest.raises(MissingError, match=r"rag_fusion: no queries from the LLM for 2 of 2 topics \(timed out"):
        written(RagFusion(), tools, ["dog", "car"], {})


def test_rag_fusion_has_a_prompt_and_a_number_of_its_own(tools):
    chat = Chat({"dog": "a\nb\nc\nd\ne"})
    found = RagFusion().rewrite(topics_of(["dog"]), None, None, replace(tools, chat=chat))
    assert found["query"].tolist() == ["dog", "a", "b", "c", "d"]
    assert "4 search" in chat.prompts[0]
    assert "points of view" in chat.prompts[0]


def test_decompose_by_rules_takes_halves_and_clauses_and_no_names(tools, caplog):
    with caplog.at_level(logging.INFO):
        found = written(Decompose(queries="rules"), tools, QUESTIONS)
    assert "decompose: no chat model is asked" in caplog.text
    assert rows(found) == [
        ("q0", 0, QUESTIONS[0], "question"),
        ("q0", 1, "Which is older, Rome", "rules"),
        ("q0", 2, "Which is older, Paris", "rules"),
        ("q0", 3, "Rome or Paris", "rules"),
        ("q1", 0, QUESTIONS[1], "question"),
        ("q1", 1, "Who built the boat", "rules"),
        ("q1", 2, "that Anna sold", "rules"),
        ("q2", 0, "dog", "question"),
        ("q3", 0, "?!", "question"),
    ]


@pytest.mark.parametrize("rewriter", [MultiQuery, RagFusion, Decompose])
def test_who_is_asked(tools, rewriter):
    assert rewriter(queries="llm").uses == rewriter(queries="auto").uses == {"chat"}
    assert rewriter(queries="rules").uses == set()
    assert rewriter(queries="llm").needs_chat
    assert not rewriter(queries="auto").needs_chat
    assert rewriter(queries="auto").describe(tools) == {"queries": "rules"}
    with pytest.raises(ConfigError, match=r"rewriter\.queries='llm' needs"):
        written(rewriter(queries="llm"), tools, ["dog"])
