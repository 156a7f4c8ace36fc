"""Texts as numbered tokens are the tokens of each text by itself, however they are read."""

from __future__ import annotations

import numpy as np
import pytest

from numbered_tokens import check_numbered
from ragauge.measures.tokens import by_tokens, places, tokens_of


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
