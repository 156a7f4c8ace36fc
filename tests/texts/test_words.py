"""Words as searching sees them, in scripts with and without spaces."""

from __future__ import annotations

import pytest

from ragauge.texts.words import ARTICLES, FUNCTION_WORDS, GRAMMAR_WORDS, STOP_WORDS, has_words, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("The Cat's whiskers, and the cat’s 9 lives!", ["the", "cat", "whiskers", "and", "the", "cat", "9", "lives"]),
        ("snake_case it's straße", ["snake", "case", "it", "strasse"]),
        ("東", ["東"]),
        ("東京", ["東京"]),
        ("東京都庁", ["東京", "京都", "都庁"]),
        ("Tokyo東京2020", ["tokyo", "東京", "2020"]),
        ("서울시는", ["서울", "울시", "시는"]),
        ("ไทย", ["ไท", "ทย"]),
        ("हिन्दी की किताबें", ["हिन्दी", "की", "किताबें"]),
        ("كِتَابٌ قديم", ["كِتَابٌ", "قديم"]),
    ],
)
def test_words_by_hand(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("query", "holds"), [("a", True), ("?! 7", True), ("東", True), ("?! …", False), ("", False), (None, False)]
)
def test_a_query_without_letters_and_digits_holds_no_words(query: object, holds: bool) -> None:
    assert has_words(query) is holds


def test_words_that_carry_grammar_are_few_and_words_that_an_answer_turns_on_are_none_of_them() -> None:
    assert ARTICLES < GRAMMAR_WORDS < FUNCTION_WORDS
    assert {"before", "more", "one"} <= FUNCTION_WORDS - GRAMMAR_WORDS
    assert all(words(word) == [word] for word in GRAMMAR_WORDS)
    assert "und" in STOP_WORDS["german"]
