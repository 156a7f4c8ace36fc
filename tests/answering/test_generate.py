from typing import Any

import numpy as np
import pandas as pd
import pytest

from chat_server import ChatServer
from ragauge.answering.answers import LACK_OF_INFORMATION, ChatGenerator, Extractive, NoLLM
from ragauge.contract import frames, identity
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.protocols import Tools

TOPICS = pd.DataFrame(
    {
        "qid": ["q1", "q2"],
        "query": ["Who built the red tower?", "Where do blue whales live?"],
        "answer": ["Anna", "oceans"],
    }
)


def contexts(*rows: tuple[str, int, str]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["qid", "n_tokens", "text"])
    return frame.assign(n_used=frame["n_tokens"], docnos=[[] for _ in rows])


def generator(url: str = "http://localhost", **fields: Any) -> ChatGenerator:
    chat = {"_target_": "langchain_ollama.ChatOllama", "model": "tiny", "base_url": url}
    return ChatGenerator(chat=chat, **{"backoff": 0.01, "timeout": 2.0, "retries": 1, **fields})


# --- chat ---------------------------------------------------------------------------------------------


def test_answers_are_rows_of_the_contexts(tools: Tools) -> None:
    asked = contexts(("q2", 100, "Whales live in the sea."), ("q1", 100, "Anna built it."), ("q1", 0, " "))
    with ChatServer(reply=lambda prompt: f"A{len(prompt)}") as server:
        answers = generator(server.url).answer(TOPICS, asked, tools)
    frames.check("answers", answers)
    assert answers[["qid", "n_tokens"]].equals(asked[["qid", "n_tokens"]])
    assert (answers["status"] == "ok").all()
    assert (answers["prompt_tokens"] > 0).all()
    with_documents, _, without = generator().prompts(TOPICS, asked)
    assert "Whales live in the sea." in with_documents
    assert "Where do blue whales live?" in with_documents
    assert "documents" not in without.lower()
    assert answers["answer"].tolist()[0] == f"A{len(with_documents)}"


def test_no_answer_and_a_cut_answer_say_so(tools: Tools) -> None:
    def fault(prompt: str, n: int) -> str:
        return "500" if "tower" in prompt else "length"

    with ChatServer(reply=lambda prompt: "half an answer", faults=fault) as server:
        asked = contexts(("q1", 100, "Some text."), ("q2", 100, "Some text."))
        answers = generator(server.url).answer(TOPICS, asked, tools)
    frames.check("answers", answers)
    assert answers["status"].tolist() == ["missing", "cut"]
    assert answers["answer"].isna().tolist() == [True, False]
    assert "500" in answers["error"][0]
    assert answers["answer"][1] == "half an answer"


def test_equal_contexts_of_two_budgets_are_paid_once(tools: Tools) -> None:
    with ChatServer() as server:
        asked = contexts(("q1", 100, "Short."), ("q1", 200, "Short."))
        answers = generator(server.url).answer(TOPICS, asked, tools)
        assert sum(server.calls.values()) == 1
    assert answers["cached"].tolist() == [False, True]


def test_the_prompts_are_part_of_the_identity_and_the_address_is_not() -> None:
    own = generator(prompt_without_documents="In a word: $question")
    assert identity.identity(own) != identity.identity(generator())
    assert identity.identity(generator("http://elsewhere")) == identity.identity(generator())
    with pytest.raises(ConfigError, match=r"\$documents"):
        generator(prompt_with_documents="Only the $question")


# --- extractive ---------------------------------------------------------------------------------------


def test_the_sentences_most_like_the_question_in_the_order_of_the_context(tools: Tools) -> None:
    text = "Bread is baked. The red tower was built by Anna.  Who knows?\nAnna built the red tower alone."
    answers = Extractive(n_sentences=2, threshold=0.3).answer(TOPICS, contexts(("q1", 50, text)), tools)
    frames.check("answers", answers)
    assert answers["answer"].tolist() == ["The red tower was built by Anna. Anna built the red tower alone."]
    assert not answers[["prompt_tokens", "completion_tokens", "cost_usd"]].any(axis=None)


def test_without_a_sentence_near_the_question_information_is_lacking(tools: Tools) -> None:
    rows = contexts(("q1", 50, "Bread is baked. Rain fell."), ("q2", 50, ""), ("q2", 10, " \n"))
    answers = Extractive(threshold=0.6).answer(TOPICS, rows, tools)
    assert answers["answer"].tolist() == [LACK_OF_INFORMATION] * 3
    assert (answers["status"] == "ok").all()


def test_a_sentence_that_two_chunks_share_is_quoted_once(tools: Tools) -> None:
    text = "Anna built the red tower. Anna built  the red tower. Rain fell."
    answers = Extractive(n_sentences=3, threshold=0.6).answer(TOPICS, contexts(("q1", 50, text)), tools)
    assert answers["answer"].tolist() == ["Anna built the red tower."]


def test_many_rows_equal_each_row_alone(tools: Tools) -> None:
    rng = np.random.default_rng(0)
    words = ["red", "tower", "built", "Anna", "blue", "whales", "live", "sea", "bread", "rain"]

    def sentence() -> str:
        return " ".join(rng.choice(words, 4)).capitalize() + "."

    rows = [(f"q{1 + i % 2}", i, " ".join(sentence() for _ in range(i % 7))) for i in range(40)]
    part = Extractive(n_sentences=2, threshold=0.2)
    together = part.answer(TOPICS, contexts(*rows), tools)["answer"].tolist()
    assert together == [part.answer(TOPICS, contexts(row), tools)["answer"][0] for row in rows]


@pytest.mark.parametrize("fields", [{"n_sentences": 0}, {"threshold": 1.5}])
def test_values_out_of_range_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(fields))):
        Extractive(**fields)


# --- none, and all ------------------------------------------------------------------------------------


def test_no_llm_gives_no_answers(tools: Tools) -> None:
    answers = NoLLM().answer(TOPICS, contexts(("q1", 100, "x"), ("q2", 100, "y")), tools)
    frames.check("answers", answers)
    assert answers["answer"].isna().all()
    assert (answers["status"] == "none").all()


@pytest.mark.parametrize("part", [Extractive(), generator(retries=0)])
def test_a_context_of_no_topic_is_an_error(part: Extractive | ChatGenerator, tools: Tools) -> None:
    with pytest.raises(DataError, match="'q9'"):
        part.answer(TOPICS, contexts(("q9", 100, "x")), tools)


@pytest.mark.parametrize("part", [Extractive(), NoLLM(), generator(retries=0)])
def test_no_contexts_give_no_answers(part: Extractive | NoLLM | ChatGenerator, tools: Tools) -> None:
    answers = part.answer(TOPICS, contexts(("q1", 1, "x")).iloc[:0], tools)
    assert len(frames.check("answers", answers)) == 0
