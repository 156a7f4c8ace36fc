from dataclasses import replace

import pytest

from answer_inputs import TOPICS, contexts, generator
from chat_server import ChatServer
from ragauge.contract import frames, identity
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError


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


def test_thoughts_are_a_column_of_their_own_and_no_part_of_the_answer(tools: Tools) -> None:
    def reply(prompt: str) -> str:
        return "<think>Who?</think>Anna" if "tower" in prompt else "The sea"

    asked = contexts(("q1", 100, "Some text."), ("q2", 100, "Some text."))
    with ChatServer(reply=reply) as server:
        answers = frames.check("answers", generator(server.url).answer(TOPICS, asked, tools))
    assert answers["answer"].tolist() == ["Anna", "The sea"]
    assert answers["thoughts"].fillna("").tolist() == ["Who?", ""]


def test_what_the_ledger_knows_is_read_without_asking_and_earlier_turns_go_before_the_question(tools: Tools) -> None:
    topics = TOPICS.assign(history=[["What is red?", "A tower."], []])
    asked = contexts(("q1", 100, "Some text."), ("q2", 100, ""))
    with ChatServer(reply=lambda prompt: "Anna") as server:
        part = generator(server.url)
        part.answer(topics, asked.iloc[:1], tools)
        known = part.known_answers(topics, asked, tools.store)
        assert sum(server.calls.values()) == 1
    assert known["answer"].fillna("").tolist() == ["Anna", ""]
    assert known["status"].tolist() == ["ok", "missing"]
    told = "Earlier in this conversation:\nUser: What is red?\nAssistant: A tower.\nNow: Who built the red tower?"
    assert [told in prompt for prompt in part.prompts(topics, asked)] == [True, False]


@pytest.mark.parametrize("chat", [{"temperature": 0}, {"top_k": 1}])
def test_a_model_that_says_the_same_each_time_is_not_asked_again(chat: dict[str, int]) -> None:
    usual = generator()
    assert identity.identity(usual.repeated(1)) != identity.identity(usual)
    [(key, value)] = chat.items()
    with pytest.raises(ConfigError, match=rf"llm\.repeat: with llm\.chat\.{key}={value} "):
        replace(usual, chat={**usual.chat, **chat}).repeated(1)


def test_equal_contexts_of_two_budgets_are_paid_once(tools: Tools) -> None:
    with ChatServer() as server:
        asked = contexts(("q1", 100, "Short."), ("q1", 200, "Short."))
        answers = generator(server.url).answer(TOPICS, asked, tools)
        assert sum(server.calls.values()) == 1
    assert answers["cached"].tolist() == [False, True]


def test_the_prompts_are_part_of_the_identity_and_the_address_is_not() -> None:
    prompts = {"prompt_with_documents": "$documents $question", "prompt_without_documents": "In a word: $question"}
    known = [identity.identity(generator(**of)) for of in ({}, prompts, *({name: prompts[name]} for name in prompts))]
    assert [known.index(one) for one in known] == [0, 1, 2, 3]
    assert identity.identity(generator("http://elsewhere")) == identity.identity(generator())
    with pytest.raises(ConfigError, match=r"\$documents"):
        generator(prompt_with_documents="Only the $question")


def test_citing_and_telling_errors_at_once_take_a_prompt_of_one_s_own() -> None:
    with pytest.raises(ConfigError, match="no shipped prompt does both"):
        generator(cite=True, tell_errors=True)
    own = "Cite $documents and answer: $question"
    assert generator(cite=True, tell_errors=True, prompt_with_documents=own).prompt_with_documents == own
    shipped = [generator(**how).prompt_with_documents for how in ({}, {"cite": True}, {"tell_errors": True})]
    assert ["contradict" in str(text) for text in shipped] == [False, False, True]
    assert ["[1]" in str(text) for text in shipped] == [False, True, False]


def test_cited_numbers_are_kept_beside_an_answer_without_them(tools: Tools) -> None:
    replies = {"tower": "Anna [1] built it [2].", "whales": " [2] "}
    asked = contexts(("q1", 100, "Some text."), ("q2", 100, "Some text."))
    with ChatServer(reply=lambda prompt: next(v for k, v in replies.items() if k in prompt)) as server:
        answers = generator(server.url, cite=True).answer(TOPICS, asked, tools)
        plain = generator(server.url).answer(TOPICS, asked, tools)
    frames.check("answers", answers)
    assert answers["answer"].tolist()[0] == "Anna built it."
    assert answers["cited_answer"].tolist() == ["Anna [1] built it [2].", " [2] "]
    # A reply of marks alone says nothing.
    assert answers["answer"].isna().tolist() == [False, True]
    assert answers["status"].tolist() == ["ok", "missing"]
    assert answers["error"].tolist()[1] == "the answer holds no visible character"
    assert plain["answer"].tolist() == list(replies.values())
    assert "cited_answer" not in plain
    assert identity.identity(generator(cite=True))["cite"] is True
    assert "cite" not in identity.identity(generator())
