"""Texts as numbered tokens are the tokens of each text by itself, however they are read."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ragauge.measures.answers._laid_out import by_tokens, places
from ragauge.measures.answers._tokens import OF_SACREBLEU, tokens_of

PIECES = [
    "", "a", "the", "The cat's", "4.6", "é", "İi", "中文 你好", "ไทย", "$5", "U.S.", "well-", "well-\nknown",
    "end-\n of", "x\u00a0y", "\u202f", "!", "&amp;", "<skipped>",
]  # fmt: skip


@pytest.mark.parametrize("name", ["squad", "mlqa", "plain", "words", "rouge_score", *OF_SACREBLEU])
def test_numbered_tokens_are_those_of_each_text_alone(name: str) -> None:
    rng = random.Random(0)
    answers, others = (["", *(" ".join(rng.choices(PIECES, k=rng.randrange(6))) for _ in range(200))] for _ in range(2))
    tokens = tokens_of("tokens", name)
    found = by_tokens(tokens, answers, others)
    read = [[tokens(text) for text in group] for group in (answers, others)]
    names = {}
    for laid_out, texts in zip(found, read, strict=True):
        assert laid_out.sizes.tolist() == [len(text) for text in texts]
        flat = [token for text in texts for token in text]
        for number, token in zip(laid_out.symbols.tolist(), flat, strict=True):
            assert names.setdefault(number, token) == token
    assert len(set(names.values())) == len(names)


def test_texts_without_a_token_are_laid_out() -> None:
    for one in by_tokens(tokens_of("tokens", "squad"), ["", "the"], ["a", ""]):
        assert one.sizes.tolist() == [0, 0]


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
