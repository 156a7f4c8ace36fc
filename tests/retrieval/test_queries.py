import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.retrieval.queries import distinct, parse_queries, question_parts


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "Which magazine was started first, Arthur's Magazine or First for Women?",
            [
                "Which magazine was started first, Arthur's Magazine",
                "Which magazine was started first, First for Women",
                "Which magazine was started first",
                "Arthur's Magazine or First for Women",
                "Arthur's Magazine",
                "First for Women",
                "magazine started first Arthur's Magazine First Women",
            ],
        ),
        (
            "Were Scott Derrickson and Ed Wood of the same nationality?",
            [
                "Were Scott Derrickson of the same nationality",
                "Were Ed Wood of the same nationality",
                "Scott Derrickson",
                "Ed Wood",
                "Scott Derrickson Ed Wood nationality",
            ],
        ),
        (
            "What position was held by the woman who portrayed Corliss Archer in 1945?",
            [
                "What position was held by the woman",
                "who portrayed Corliss Archer in 1945",
                "Corliss Archer",
                "position held woman portrayed Corliss Archer 1945",
            ],
        ),
        (
            'Who wrote the song "Blue in green" in World War 2?',
            ["Blue in green", "World War 2", "wrote song Blue green World War 2"],
        ),
        (
            "Which film is older, “Alien” or “Heat”?",
            [
                "Which film is older, “Alien",
                "Which film is older, “Heat",
                "Which film is older",
                "Alien” or “Heat",
                "Alien",
                "Heat",
                "film older Alien Heat",
            ],
        ),
        ("wo liegt berlin", []),
        ("Is it?", []),
        ("", []),
    ],
)
def test_parts_by_hand(question, parts):
    assert question_parts(question) == parts


def test_names_keep_initials_and_small_links():
    assert "J. R. Tolkien" in question_parts("Where was J. R. Tolkien born, and in which year?")
    assert "Ludwig van Beethoven" in question_parts("Where did Ludwig van Beethoven live?")
    assert "Grace Kelly" in question_parts("When was Grace Kelly's daughter born?")
    assert "University of Oxford" in question_parts("How old is the University of Oxford?")


@given(st.text(max_size=60))
def test_parts_of_any_text(question):
    parts = question_parts(question)
    assert parts == distinct(parts, but=question)
    assert parts == question_parts(question)


@pytest.mark.parametrize(
    ("reply", "queries"),
    [
        ("capital of France\ncapital of Italy", ["capital of France", "capital of Italy"]),
        ("1. one thing\n2) two things\n(3) three", ["one thing", "two things", "three"]),
        ("- one\n* two\n• three\n", ["one", "two", "three"]),
        ("Here are the queries:\n\nQuery 1: one\nQuery 2: two", ["one", "two"]),
        ('"one"\nONE\none?', ["one"]),
        ("1945 elections in France", ["1945 elections in France"]),
        ("3.5 mm jack", ["3.5 mm jack"]),
        ("", []),
        ("...\n--\n", []),
    ],
)
def test_parse_queries(reply, queries):
    assert parse_queries(reply) == queries
