"""Texts as numbered tokens are the tokens of each text by itself, however they are read."""

from __future__ import annotations

import numpy as np
import pytest

from numbered_tokens import check_numbered
from ragauge.measures.tokens import LaidOut, by_tokens, places, tokens_of


@pytest.mark.parametrize("name", ["squad", "mlqa", "plain", "words", "rouge_score"])
def test_numbered_tokens_are_those_of_each_text_alone(name: str) -> None:
    check_numbered(tokens_of("tokens", name))


def test_texts_without_a_token_are_laid_out() -> None:
    for one in by_tokens(tokens_of("tokens", "squad"), ["", "the"], ["a", ""]):
        assert one.sizes.tolist() == [0, 0]


def test_a_text_shorter_than_an_n_gram_has_none() -> None:
    (one,) = by_tokens(tokens_of("tokens", "squad"), ["x", "x y z"])
    assert one.ngrams(3).tolist() == [[1, 0, 0], [3, 2, 1]]


def test_another_group_of_texts_is_not_taken_for_the_one_before() -> None:
    tokens = tokens_of("tokens", "squad")
    (first,) = by_tokens(tokens, ["one two", "two"])
    (second,) = by_tokens(tokens, ["one two", "two two"])
    assert first.sizes.tolist() == [2, 1]
    assert second.sizes.tolist() == [2, 2]
    assert second.symbols[2] == second.symbols[3] == second.symbols[1]


def test_places_are_those_where_a_text_stands_in_one_piece() -> None:
    tokens = tokens_of("tokens", "squad")
    pairs = [("x y z y z", "y z"), ("x y", "y x"), ("x", "x y"), ("", "x"), ("x", ""), ("x y z", "x z")]
    found = places(*by_tokens(tokens, *map(list, zip(*pairs, strict=True))))
    np.testing.assert_array_equal(found, [1, -1, -1, -1, 0, -1])


def test_few_symbols_are_counted_as_many_are(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(7)

    def drawn(n: int) -> LaidOut:
        sizes = random.integers(0, 9, n)
        return LaidOut(random.integers(0, 4, int(sizes.sum())), np.concatenate([[0], np.cumsum(sizes)]))

    texts, others, one_each = drawn(40), drawn(100), drawn(40)
    first = np.sort(np.concatenate([[0, 100], random.integers(0, 101, 39)]))  # some have no other
    few = texts.matches(others, 3, first), texts.matches(one_each, 2)
    assert few[0].sum() > 0
    monkeypatch.setattr("ragauge.measures.tokens._FEW", -1)
    many = texts.matches(others, 3, first), texts.matches(one_each, 2)
    np.testing.assert_array_equal(few[0], many[0])
    np.testing.assert_array_equal(few[1], many[1])


def test_ngrams_are_counted_by_hand() -> None:
    # "a b a" against "a a b" and "a b": a twice and b once stand in the first; "a b" in both, "b a" in none.
    texts = LaidOut(np.array([0, 1, 0]), np.array([0, 3]))
    others = LaidOut(np.array([0, 0, 1, 0, 1]), np.array([0, 3, 5]))
    assert texts.matches(others, 2, np.array([0, 2])).tolist() == [[3, 1]]
