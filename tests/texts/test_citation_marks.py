"""Citations in a text: which sentence cites what, and the text without them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.texts.citation_marks import given_sentences, statements_of, without_marks


@pytest.mark.parametrize(
    ("text", "plain", "cited"),
    [
        ("Anna built it [1][3]. It is high.[2] Yes [4, 5].", "Anna built it. It is high. Yes.",
         [(1, 3), (2,), (4, 5)]),
        ("First. [1] Second. [2]", "First. Second.", [(1,), (2,)]),
        ("[2] Graz has it.", "Graz has it.", [(2,)]),
        ("From two to four [2-4], and seven [7].", "From two to four, and seven.", [(2, 3, 4, 7)]),
        ("Twice [1], the same [1].", "Twice, the same.", [(1,)]),
        ("Backwards [3-1].", "Backwards.", [(3, 1)]),
        ("No marks. At all.", "No marks. At all.", [(), ()]),
        ("In [1999] and [sic] and [1.5].", "In [1999] and [sic] and [1.5].", [()]),
        ("One [1]\n\nTwo [2]", "One\n\nTwo", [(1,), (2,)]),
        ("[3]", "", []),
        ("— [1]", "—", []),
        ("a[1]b", "a b", [(1,)]),
    ],
)  # fmt: skip
def test_a_mark_belongs_to_the_sentence_that_it_closes(text: str, plain: str, cited: list[tuple[int, ...]]) -> None:
    assert without_marks(text) == plain
    assert [one.cited for one in statements_of(text)] == cited


def test_a_text_without_marks_stays_as_it_is() -> None:
    assert without_marks("  as it is \n") == "  as it is \n"


@given(st.text("ab. \n[]1,-2", max_size=40))
def test_any_text_can_be_read(text: str) -> None:
    found = statements_of(text)
    assert all(one.text in without_marks(text) or "[" in one.text for one in found)
    assert len(without_marks(text)) <= len(text)


def test_sentences_that_an_answer_gives_stay_as_they_are() -> None:
    text = "One. Two [sic]\u2028[3][1][3]\n\nthree\u2028\n\n\u2028[2]"
    assert given_sentences(text) == [("One. Two [sic]", (3, 1, 3)), ("three", ()), ("", (2,))]
    assert statements_of(text) == [("One. Two [sic]", (3, 1)), ("three", ())]
    assert given_sentences("One [1].") is given_sentences("") is None
