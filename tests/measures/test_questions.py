"""What is derived of questions, by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from ragauge.measures.questions import content_words, evidence_documents, languages, lexical_overlap, rarity

TOPICS = pd.DataFrame(
    {
        "qid": ["q1", "q2", "q3", "q4"],
        "query": ["Who built the Eiffel tower?", "Is the who there?", "?!", "Zebra tower"],
    }
)


def test_the_words_of_a_question_are_those_of_its_subject() -> None:
    assert content_words("Who built the Eiffel tower's tower?") == {"built", "eiffel", "tower"}
    assert content_words("Is the who there?") == {"is", "the", "who", "there"}
    assert content_words("?!") == set()


def test_the_overlap_is_the_share_of_words_that_stand_in_any_part_of_the_evidence() -> None:
    evidence = pd.DataFrame(
        {
            "qid": ["q1", "q1", "q2", "q3", "q4"],
            "text": ["A TOWER stands.", "Built of iron.", "no", "x", None],
        }
    )
    found = lexical_overlap(TOPICS, evidence)
    assert found[0] == pytest.approx(2 / 3)
    assert found[1] == 0
    assert found[2:].isna().all(), "no word, no evidence text"


def test_rarity_is_the_mean_idf_over_documents() -> None:
    docs = pd.DataFrame({"title": ["Eiffel", "", ""], "text": ["built a tower", "tower tower", "a tower"]})
    found = rarity(TOPICS, docs)
    once, never = math.log(4 / 2), math.log(4 / 1)  # `tower` is in all three: 0
    assert found[0] == pytest.approx((once + once + 0) / 3)
    assert found[1] == pytest.approx(never)
    assert math.isnan(found[2])
    assert found[3] == pytest.approx((never + 0) / 2)
    assert rarity(TOPICS, docs.iloc[:0]).isna().all()


def test_languages_are_named_by_question() -> None:
    queries = ["Wer hat den Turm gebaut, und wann war das?", "Who built the tower, and when was it?", "?!"]
    found = languages(TOPICS[:3].assign(query=queries))
    assert found[:2].tolist() == ["german", "english"]
    assert pd.isna(found[2])


def test_evidence_documents_are_counted_once_each_up_to_five() -> None:
    rows = [  # d3 is known to be relevant, and not needed
        ("q1", "d1", "a"), ("q1", "d1", "b"), ("q1", "d2", "c"), ("q1", "d3", None),
        ("q2", None, "a"), ("q2", None, "b"), ("q2", "d1", "c"),
        *(("q3", f"d{i}", None) for i in range(7)),
    ]  # fmt: skip
    evidence = pd.DataFrame(rows, columns=["qid", "docno", "text"], dtype=object)
    found = evidence_documents(TOPICS, evidence)
    assert found[:3].tolist() == [2, 3, 5]
    assert math.isnan(found[3])
