import logging
from dataclasses import replace

import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.component import ChatModel
from ragauge.contract.errors import ConfigError, MissingError
from ragauge.contract.identity import identity
from ragauge.contract.replies import Reply
from ragauge.retrieval.retrievers import MLQ, Sim

TEXTS = {"a": "apple", "b": "boat", "c": "car", "d": "apple boat", "e": "dog"}


class Chat(ChatModel):
    """Answers by the first word of the prompt's question that it knows."""

    def __init__(self, replies):
        self.replies = replies
        self.prompts = []

    def ask(self, prompts, store, what, **how):
        self.prompts += prompts
        return [
            next((reply for word, reply in self.replies.items() if word in prompt), Reply(None, "timed out"))
            for prompt in prompts
        ]


def search(retriever, tools, folder, queries, texts=TEXTS):
    chunks = pd.DataFrame({"docno": list(texts), "text": list(texts.values())}, dtype="str")
    folder.mkdir(exist_ok=True)
    retriever.build_index(chunks, folder, tools)
    topics = pd.DataFrame({"qid": [f"q{i}" for i in range(len(queries))], "query": queries})
    return retriever.transformer(chunks, folder, tools)(topics)


def test_first_seen_takes_query_after_query(tools, tmp_path):
    chat = Chat({"things": Reply("apple\nboat\ncar")})
    mlq = MLQ(top_k=2, union="first_seen", with_question=False)
    run = search(mlq, replace(tools, chat=chat), tmp_path / "i", ["things"])
    frames.check("run", run)
    # apple finds a, d; boat finds b, d; car finds c and whatever is next.
    assert run["docno"].tolist()[:4] == ["a", "d", "b", "c"]
    assert run["score"].tolist() == [1 / (rank + 1) for rank in range(len(run))]
    assert run["queries"].unique().tolist() == ["llm"]
    assert "things" in chat.prompts[0]
    assert "$" not in chat.prompts[0]


def test_rrf_by_hand(tools, tmp_path):
    chat = Chat({"things": Reply("apple\nboat")})
    mlq = MLQ(top_k=2, union="rrf", with_question=False)
    run = search(mlq, replace(tools, chat=chat), tmp_path / "i", ["things"])
    # d is second for both queries, a and b are first for one.
    assert run["docno"].tolist() == ["d", "a", "b"]
    assert run["score"].tolist() == pytest.approx([2 / 62, 1 / 61, 1 / 61])
    assert run["similarity"].iloc[1] == pytest.approx(1)


def test_the_question_comes_first(tools, tmp_path):
    chat = Chat({"dog": Reply("apple\nDog")})
    run = search(MLQ(top_k=1, union="first_seen"), replace(tools, chat=chat), tmp_path / "i", ["dog"])
    assert run["docno"].tolist() == ["e", "a"]


def test_no_more_queries_than_asked_for(tools, tmp_path):
    chat = Chat({"things": Reply("apple\nboat\ncar\ndog")})
    mlq = MLQ(top_k=1, n_queries=2, with_question=False)
    run = search(mlq, replace(tools, chat=chat), tmp_path / "i", ["things"])
    assert set(run["docno"]) == {"a", "b"}


def test_a_failed_or_empty_reply_leaves_the_question_alone_and_says_so(tools, tmp_path, caplog):
    chat = Chat({"apple": Reply("apple\nboat"), "dog": Reply("Sorry:\n")})
    with caplog.at_level(logging.WARNING):
        run = search(
            MLQ(top_k=1, with_question=False),
            replace(tools, chat=chat),
            tmp_path / "i",
            ["apple", "car", "dog"],
        )
    assert run.groupby("qid")["docno"].agg(list).to_dict() == {"q0": ["a", "b"], "q1": ["c"], "q2": ["e"]}
    assert run.groupby("qid")["queries"].first().tolist() == ["llm", "question", "question"]
    assert "2 of 3 topics" in caplog.text
    assert "timed out" in caplog.text


def test_an_llm_that_never_answers_is_an_error(tools, tmp_path):
    with pytest.raises(MissingError, match=r"2 of 2 topics \(timed out\)"):
        search(MLQ(), replace(tools, chat=Chat({})), tmp_path / "i", ["apple", "car"])


def test_rules_without_a_chat_model(tools, tmp_path, caplog):
    texts = {"r": "Rome", "p": "Paris", "x": "nothing"}
    with caplog.at_level(logging.INFO):
        run = search(MLQ(top_k=1), tools, tmp_path / "i", ["Which is older, Rome or Paris?"], texts)
    assert set(run["docno"]) == {"r", "p"}
    assert run["queries"].unique().tolist() == ["rules"]
    assert "by rules" in caplog.text
    again = search(MLQ(top_k=1, queries="rules"), replace(tools, chat=Chat({})), tmp_path / "i", ["Rome"], texts)
    assert again["docno"].tolist() == ["r"]


def test_llm_without_a_chat_model(tools, tmp_path):
    with pytest.raises(ConfigError, match=r"retriever\.queries='llm'"):
        search(MLQ(queries="llm"), tools, tmp_path / "i", ["apple"])


def test_empty_queries_and_no_chunks(tools, tmp_path):
    chat = Chat({"apple": Reply("apple")})
    run = search(MLQ(), replace(tools, chat=chat), tmp_path / "i", ["", None, "?!", "apple"])
    assert set(run["qid"]) == {"q3"}
    assert len(chat.prompts) == 1
    empty = search(MLQ(), replace(tools, chat=chat), tmp_path / "none", ["apple"], {})
    assert len(empty) == 0
    assert empty.columns.equals(run.columns)
    assert len(chat.prompts) == 1


@pytest.mark.parametrize("placeholder", ["{n_queries}", "$n_queries", "$"])
def test_placeholders_in_a_question_are_text(tools, tmp_path, placeholder):
    chat = Chat({f"{placeholder} apple": Reply("apple")})
    run = search(MLQ(top_k=1), replace(tools, chat=chat), tmp_path / "i", [f"{placeholder} apple"])
    assert run["queries"].tolist() == ["llm"]


def test_mlq_fills_its_prompt_as_all_prompts_are_filled(tools, tmp_path):
    """A .txt file is read, and braces are text."""
    file = tmp_path / "own.txt"
    file.write_text("{braces} $$1: $n_queries queries for $question\n", encoding="utf-8")
    chat = Chat({"apple": Reply("apple")})
    search(MLQ(prompt=str(file), n_queries=2), replace(tools, chat=chat), tmp_path / "i", ["apple"])
    assert chat.prompts == ["{braces} $1: 2 queries for apple"]


def test_uses_and_identity():
    assert MLQ().uses == {"embedder", "chat"}
    assert MLQ(queries="rules").uses == {"embedder"}
    assert MLQ().index_identity() == Sim().index_identity()
    assert identity(MLQ(prompt="$question")) != identity(MLQ())
    assert "$question" in identity(MLQ())["prompt"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("top_k", 0),
        ("queries", "both"),
        ("n_queries", 0),
        ("union", "all"),
        ("rrf_constant", -1),
        ("prompt", "$query"),
        ("prompt", "$question $"),
        ("prompt", "{question}"),
        ("prompt", "no_such_file.txt"),
    ],
)
def test_values_that_cannot_be(field, value):
    with pytest.raises(ConfigError, match=rf"retriever\.{field}"):
        MLQ(**{field: value})
