"""Where evidence stands in a context, and whether an answer is made of it."""

from __future__ import annotations

import pandas as pd
import pytest

from ragauge.diagnose.places import evidence_places, from_context, place_of

FILL = "xxxxxxxxx "


@pytest.mark.parametrize(("before", "after", "place"), [(0, 9, "beginning"), (4, 5, "middle"), (9, 0, "end")])
def test_the_third_in_which_the_evidence_stands(before: int, after: int, place: str) -> None:
    context = FILL * before + "Anna came." + FILL * after
    evidence = pd.DataFrame({"qid": ["q"], "part": [0], "text": ["Anna came."]})
    assert evidence_places(evidence, {"q": context}, ["q"]) == {"q": place}


def test_what_stands_on_the_edge_of_a_third_is_in_the_middle() -> None:
    evidence = pd.DataFrame({"qid": ["q"], "part": [0], "text": ["PP"]})
    for context, place in (
        ("xPPxxx", "middle"),
        ("xxxPPx", "middle"),
        ("xPPxxxx", "beginning"),
        ("xxxxPPx", "end"),
    ):
        assert evidence_places(evidence, {"q": context}, ["q"]) == {"q": place}


def test_parts_in_several_thirds_are_spread() -> None:
    evidence = pd.DataFrame({"qid": ["q", "q"], "part": [0, 1], "text": ["Anna came.", "Ben left."]})
    context = "Anna came. " + FILL * 5 + "Ben left."
    assert evidence_places(evidence, {"q": context}, ["q"]) == {"q": "spread"}
    assert evidence_places(evidence, {"q": context}, []) == {}
    assert evidence_places(evidence, {"q": "Anna came. " + FILL * 5}, ["q"]) == {}


def test_the_place_is_that_of_the_middle_of_the_part_in_the_context_as_it_is() -> None:
    assert place_of("Anna came.", FILL * 2 + "Anna came." + FILL) == 25 / 40
    assert place_of("Anna came.", "x" + " " * 9 + "Anna came.") == 15 / 20  # nothing is folded where it stands
    assert place_of("Anna", "Anna and Anna") == 2 / 13
    # Folded, the context has 16 characters, and of the part at 6..16 none is left out: it is short.
    assert place_of("Ann  came.", "x yy   Ann came.") == (5 + 9 / 2) / 14


def test_white_space_and_a_tenth_at_both_ends_may_differ() -> None:
    part = "The tower was built by Anna in the year of the great flood."
    assert place_of(part, part.replace(" ", "\n  ")) == pytest.approx(0.5, abs=0.1)
    assert place_of(part, FILL + part[4:-4]) is not None
    assert place_of(part, FILL + part[20:]) is None
    assert place_of(part, "") is None


def test_an_answer_of_words_of_the_context_or_the_question() -> None:
    context, query = "Linz lies on the Danube. Graz does not.", "Which city lies on the river?"
    assert from_context("The city of Linz.", query, context)
    assert not from_context("Vienna", query, context)
    assert not from_context("Linz, on the Rhine", query, context)
    assert from_context("", query, context)
    assert from_context("Graz's river", query, context)
    assert not from_context("Dan", query, context)  # within another word
    assert from_context("Dan", query, f"{context} Dan does.")  # within one, and then by itself
    assert not from_context("Dan", query, "an xDan")
    assert from_context("東京", "", "首都は東京です")
    assert not from_context("大阪", "", "首都は東京です")
