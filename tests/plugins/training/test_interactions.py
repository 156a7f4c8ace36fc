"""What question, passage and answer have in common, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ragauge.plugins.training.ares.interactions import INTERACTIONS, Triple, interactions, sides

PASSAGE = "Bar is a town on the Rhine. The mayor of Bar is Ann Bolo. In 1832 it had 1,476 people."


def of(question: str, passage: str = "", answer: str = "") -> dict[str, float]:
    (row,) = interactions([Triple(question, passage, answer)])
    return dict(zip(INTERACTIONS, row, strict=True))


def test_an_answer_that_stands_in_the_sentence_that_the_question_is_about() -> None:
    found = of("Who is the mayor of Bar?", PASSAGE, "Ann Bolo")
    assert found["question_in_passage"] == found["question_in_sentence"] == 1  # mayor, Bar
    assert found["answer_in_passage"] == found["answer_in_sentence"] == found["answer_stands_in_passage"] == 1
    assert found["question_beside_answer"] == found["question_near_answer"] == 1
    assert found["answer_in_question"] == found["answer_has_number"] == 0
    assert found["answer_length"] == pytest.approx(np.log(3))


def test_an_answer_of_another_sentence_and_one_that_is_not_there() -> None:
    found = of("Who is the mayor of Bar?", PASSAGE, "1,476")
    assert (found["answer_stands_in_passage"], found["numbers_in_passage"]) == (1, 1)
    assert found["question_beside_answer"] == 0
    assert found["question_near_answer"] == 1  # its neighbour names the mayor
    found = of("How many people had Bar?", PASSAGE, "1,500 people")
    assert (found["answer_stands_in_passage"], found["numbers_in_passage"]) == (0, 0.5)
    assert found["answer_in_passage"] == pytest.approx(2 / 3)


def test_texts_that_are_not_there_are_0() -> None:
    assert not any(of("").values())
    assert interactions([]).shape == (0, len(INTERACTIONS))


def test_each_question_reads_its_own_two_texts() -> None:
    triple = Triple("q", "p", "a")
    assert sides("context_relevance", triple) == ("q", "p")
    assert sides("answer_faithfulness", triple) == ("q a", "p")
    assert sides("answer_relevance", triple) == ("q", "a")
