"""What two lists of tokens share: by hand, and against plain loops."""

from __future__ import annotations

import random

import pytest

from ragauge.measures.tokens import common_subsequence, matched, ngrams, place_of


def test_by_hand() -> None:
    # "a b a" against "a a b" and "a b": a twice and b once stand in the first; "a b" in both, "b a" in none.
    assert [matched("aba", ["aab", "ab"], n) for n in (1, 2, 3)] == [3, 1, 0]
    assert (ngrams("x", 3).total(), matched("x", [], 1)) == (0, 0)
    pairs = [("xyzyz", "yz", 1), ("xy", "yx", -1), ("x", "xy", -1), ("", "x", -1), ("x", "", 0), ("xyz", "xz", -1)]
    assert [place_of(list(part), list(tokens)) for tokens, part, _ in pairs] == [place for *_, place in pairs]


@pytest.mark.parametrize("letters", ["ab", "abcdefgh"])
def test_a_common_subsequence_is_as_long_as_in_the_table_of_the_textbook(letters: str) -> None:
    rng = random.Random(0)
    for _ in range(100):
        a, b = ("".join(rng.choices(letters, k=rng.randrange(90))) for _ in range(2))
        table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
        assert common_subsequence(a, b) == table[-1][-1]
