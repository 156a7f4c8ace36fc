from typing import Any

import numpy as np
import pytest

from answer_inputs import TOPICS, contexts
from ragauge.answering import Extractive
from ragauge.answering.extractive import LACK_OF_INFORMATION
from ragauge.contract import frames
from ragauge.contract.errors import ConfigError
from ragauge.contract.protocols import Tools


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


def test_a_sentence_that_the_budget_cut_is_quoted_only_where_there_is_no_other(tools: Tools) -> None:
    part = Extractive(threshold=0.3)
    for text, answer in (
        ("Anna built the red tower. Anna built the red", "Anna built the red tower."),
        ("Anna built the red", "Anna built the red"),
    ):
        assert part.answer(TOPICS, contexts(("q1", 50, text)), tools)["answer"].tolist() == [answer]
