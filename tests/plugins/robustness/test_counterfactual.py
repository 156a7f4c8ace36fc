"""Detected, corrected, fooled: by hand, by the word of an LLM, and for answers that name both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.component import ChatModel
from ragauge.contract.errors import ConfigError
from ragauge.contract.replies import Reply
from ragauge.plugins.robustness.counterfactual import Counterfactual, says_documents_err

TRUE, CHANGED = "1,476", "2,957"


def told(
    answer: str | None, true: Any = (TRUE,), changed: Any = (CHANGED,), context: str = "", **fields: Any
) -> list[float]:
    """detected, corrected, fooled."""
    topics = pd.DataFrame({"qid": ["q"], "query": ["How many?"], "answer": [true[0]]})
    topics["answers"] = [np.array(true, dtype=object)]
    topics["wrong_answers"] = [np.array(changed, dtype=object)]
    answers = pd.DataFrame({"qid": ["q"], "n_tokens": [8], "answer": pd.array([answer], "str")})
    contexts = pd.DataFrame({"qid": ["q"], "n_tokens": [8], "text": [context]})
    nothing: Any = None
    found = Counterfactual(**fields).measure(topics, nothing, contexts, answers, nothing)
    frames.check("answer_values", found)
    assert found["measure"].tolist() == ["detected", "corrected", "fooled"]
    return found["value"].tolist()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("It employs 2,957 people.", [0, 0, 1]),
        ("It employs 2957 people.", [0, 0, 1]),
        ("It employs 1,476 people.", [0, 1, 0]),
        ("There are factual errors in the documents. It employs 1,476.", [1, 1, 0]),
        ("There are factual errors in the provided documents.", [1, 0, 0]),
        ("There are factual errors in the documents. The answer is 2,957.", [1, 0, 0]),
        ("The document says 2,957, which is wrong: it is 1,476.", [1, 1, 0]),
        ("It employs 1,476 or 2,957 people.", [0, 0, 0]),
        ("It employs 12,957 people.", [0, 0, 0]),
        ("Some other number.", [0, 0, 0]),
        ("", [0, 0, 0]),
        # A refusal is not a correction, whatever it names.
        ("The documents do not hold enough information to answer.", [0, 0, 0]),
        ("There is not enough information to say whether it is 1,476.", [0, 0, 0]),
        ("There are factual errors in the documents, so I cannot answer: 1,476 or 2,957.", [1, 0, 0]),
    ],
)
def test_by_hand(answer: str, expected: list[float]) -> None:
    assert told(answer) == expected


def test_naming_both_is_a_correction_only_where_the_documents_do_not_name_both() -> None:
    answer = "The documents contradict each other: one says 2,957, another 1,476."
    assert told(answer, context="It has 2,957 people.") == [1, 1, 0]
    assert told(answer, context="It has 2,957 people. It has 1,476 people.") == [1, 0, 0]


def test_an_answer_within_the_other_is_not_named_by_it() -> None:
    assert told("Ann Lee Smith", ["Ann Lee"], ["Ann Lee Smith"]) == [0, 0, 1]
    assert told("Ann Lee", ["Ann Lee"], ["Ann Lee Smith"]) == [0, 1, 0]
    assert told("Ann Lee, not Ann Lee Smith", ["Ann Lee"], ["Ann Lee Smith"]) == [0, 0, 0]  # both


def test_yes_and_no_are_named_by_the_beginning() -> None:
    assert told("Yes, both have.", ["yes"], ["no"]) == [0, 1, 0]
    assert told("No.", ["yes"], ["no"]) == [0, 0, 1]
    assert told("They say yes.", ["yes"], ["no"]) == [0, 0, 0]


def test_any_spelling_counts_and_every_slot_must_be_there() -> None:
    assert told("It is two.", ["2", "two"], ["1", "one"]) == [0, 1, 0]
    assert told("In Arizona, at Glendale.", ["Tampa, Florida"], ["Glendale, Arizona"]) == [0, 0, 1]
    assert told("In Arizona.", ["Tampa, Florida"], ["Glendale, Arizona"]) == [0, 0, 0]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The document is not correct.", True),
        ("The documents contradict one another.", True),
        ("The sources disagree on it.", True),
        ("One passage is mistaken.", True),
        ("There are factual errors.", True),
        ("提供的文档存在事实性错误。", True),
        ("There are no factual errors in the documents.", False),
        ("The documents do not contradict each other.", False),
        ("The passages contain no errors.", False),
        ("The conflict began in 1802.", False),
        ("He was wrong. The documents say 1802.", False),
        ("The documents do not say it.", False),
        ("", False),
    ],
)
def test_phrases_that_say_that_documents_err(answer: str, expected: bool) -> None:
    assert says_documents_err(answer) is expected


def test_what_is_missing_is_missing_and_says_why() -> None:
    topics = pd.DataFrame({"qid": ["a", "b", "c"], "query": ["?"] * 3, "answer": ["x", "x", None]})
    topics["wrong_answers"] = [["y"], [], ["y"]]
    answers = pd.DataFrame({"qid": ["a", "b", "c"], "n_tokens": 8, "answer": pd.array([None, "x", "x"], "str")})
    contexts = answers[["qid", "n_tokens"]].assign(text="")
    nothing: Any = None
    found = Counterfactual().measure(topics, nothing, contexts, answers, nothing)
    assert found["value"].isna().all()
    assert found["status"].tolist() == ["no answer"] * 3 + ["no reference"] * 6


class Chat(ChatModel):
    """A chat model that says of each distinct answer what it was told to say."""

    def __init__(self, replies: dict[str, str | None]) -> None:
        self.replies, self.prompts = replies, []

    def ask(self, prompts: Any, store: Any, what: str, readers: Any = ()) -> list[Reply]:
        self.prompts += prompts
        found = [self.replies[next(a for a in self.replies if f"\n{a}\n" in p)] for p in prompts]
        return [Reply(text, None if text else "down") for text in found]


def test_an_llm_may_tell_and_what_it_fails_to_tell_is_missing() -> None:
    yes, no = json.dumps({"detected": True}), json.dumps({"detected": False})
    chat = Chat({"it lies": yes, "1,476": no, "2,957": '{"detected": "perhaps"}', "other": None})
    texts = ["it lies", "1,476", "2,957", "other"]
    qids = list("abcd")
    topics = pd.DataFrame({"qid": qids, "query": "$q {}", "answer": TRUE})
    topics["wrong_answers"] = [[CHANGED]] * 4
    answers = pd.DataFrame({"qid": qids, "n_tokens": 8, "answer": pd.array(texts, "str")})
    contexts = answers[["qid", "n_tokens"]].assign(text="")

    class Tools:
        store = Path()

    tools: Any = Tools()
    tools.chat = chat
    nothing: Any = None
    measure = Counterfactual(detection="chat")
    assert measure.uses == {"chat"}
    found = measure.measure(topics, nothing, contexts, answers, tools).pivot(
        index="qid", columns="measure", values="value"
    )
    assert found.loc["a", "detected"] == 1
    assert found.loc["b"].to_dict() == {"detected": 0, "corrected": 1, "fooled": 0}
    assert found.loc[["c", "d"]].isna().all(axis=None)
    assert len(chat.prompts) == 4, "each once"


def test_choices() -> None:
    assert Counterfactual().uses == frozenset()
    with pytest.raises(ConfigError, match=r"answers\.counterfactual\.detection"):
        Counterfactual(detection="guess")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"answers\.counterfactual\.prompt"):
        Counterfactual(detection="chat", prompt="no placeholder")
