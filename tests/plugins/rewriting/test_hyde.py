"""Hypothetical passages: how a reply is read, and what is searched for."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ragauge.contract import component
from ragauge.contract.component import ChatModel
from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.replies import Reply
from ragauge.plugins.rewriting.hyde import HyDE
from ragauge.retrieval.retrievers import Sim
from ragauge.retrieval.searching import check_queries, search

SEVERAL = "Passage 1: The tower is high.\n---\n\n**Passage 2:** Anna built it.\n * * * \n***\n\n----\nIn Graz.\n"


class Chat(ChatModel):
    def __init__(self, *replies):
        self.replies, self.prompts = replies, []

    def ask(self, prompts, store, what, **how):
        self.prompts += prompts
        return [Reply(text) if text is not None else Reply(None, "cut off") for text in self.replies]


def written(rewriter, tools, chat, *questions):
    topics = pd.DataFrame({"qid": [f"q{i}" for i in range(len(questions))], "query": questions}, dtype="str")
    found = rewriter.rewrite(topics, None, None, replace(tools, chat=chat))
    return check_queries(found, topics, "a test")


def test_one_passage_is_the_whole_reply(tools):
    chat = Chat("Passage: The tower is high.\n---\nIt is old.", None)
    found = written(HyDE(), tools, chat, "Who built it?", "?", "Where?")
    assert len(chat.prompts) == 2  # a question without words is not asked about
    assert found[["qid", "query", "role", "origin"]].to_numpy().tolist() == [
        ["q0", "Who built it?", "query", "question"],
        ["q0", "The tower is high.\n---\nIt is old.", "passage", "llm"],
        ["q1", "?", "query", "question"],
        ["q2", "Where?", "query", "failed"],
    ]
    assert found["search"].eq(0).all()
    assert found["weight"].eq(1).all()


def test_several_passages_come_from_one_request(tools):
    chat = Chat(SEVERAL)
    found = written(HyDE(n_passages=3, with_question=False), tools, chat, "Who built it?")
    assert found["query"].tolist() == ["The tower is high.", "Anna built it.", "In Graz."]
    assert found["role"].unique().tolist() == ["passage"]
    assert len(chat.prompts) == 1
    assert "Write 3 different passages" in chat.prompts[0]
    fewer = written(HyDE(n_passages=2, with_question=False), tools, Chat(SEVERAL), "Who built it?")
    assert fewer["query"].tolist() == ["The tower is high.", "Anna built it."]


@pytest.mark.parametrize("with_question", [True, False])
def test_the_vector_is_the_mean_of_passages_and_question_by_hand(tools, tmp_path, with_question):
    """The roles reach the embedder: passages are embedded as what is found, the question as a query."""
    vectors = {
        ("query", "Who?"): [1.0, 0.0, 0.0],
        ("passage", "Anna"): [0.0, 1.0, 0.0],
        ("passage", "Bert"): [0.0, 0.6, 0.8],
    }
    index = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32)

    class Embedder(component.Embedder):
        def embed(self, texts, role="passage", scratch=None):
            return np.array([vectors[role, text] for text in texts], dtype=np.float32)

    chunks = pd.DataFrame({"docno": ["x", "y", "z"], "text": ["x", "y", "z"]}, dtype="str")
    np.save(tmp_path / "vectors.npy", index)
    rewriter = HyDE(n_passages=2, with_question=with_question)
    queries = written(rewriter, tools, Chat("Anna\n---\nBert"), "Who?")
    topics = pd.DataFrame({"qid": ["q0"], "query": ["Who?"]}, dtype="str")
    asked = replace(tools, embedder=Embedder())
    run = search(Sim(top_k=3), topics, queries, rewriter, chunks, tmp_path, asked)
    mean = np.array([1.0 if with_question else 0.0, 1.6, 0.8])
    scores = dict(zip(run["docno"], run["score"], strict=True))
    assert [scores[docno] for docno in "xyz"] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)


def test_no_passage_at_all_is_an_error(tools):
    with pytest.raises(MissingError, match=r"hyde: no passages from the LLM for 2 of 2 topics \(cut off\)"):
        written(HyDE(), tools, Chat(None, " --- "), "Who?", "Where?")
    with pytest.raises(ConfigError, match="rewriter=hyde needs an llm"):
        written(HyDE(), tools, None, "Who?")
