"""Near duplicates: values by hand, a brute-force twin, and a corpus of copies."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.plugins.hygiene import near
from ragauge.plugins.hygiene.near import THRESHOLD, Near, near_pairs
from ragauge.texts.words import words

Pairs = dict[tuple[int, int], float]


def brute_force(texts: Sequence[str]) -> Pairs:
    """All pairs of near duplicates with their similarity, by Python's sets."""
    lists = [words(text) for text in texts]
    sets = [{tuple(of[i : i + 5]) for i in range(max(1, len(of) - 4))} if of else set() for of in lists]
    found = {}
    for a, b in combinations(range(len(texts)), 2):
        if sets[a] and sets[b]:
            jaccard = len(sets[a] & sets[b]) / len(sets[a] | sets[b])
            if jaccard >= THRESHOLD:
                found[a, b] = jaccard
    return found


def groups(pairs: Sequence[tuple[int, int]]) -> set[frozenset[int]]:
    """What chains of pairs connect."""
    of: dict[int, frozenset[int]] = {}
    for pair in pairs:
        joined = frozenset(pair).union(*(of.get(one, ()) for one in pair))
        of |= dict.fromkeys(joined, joined)
    return set(of.values())


def agrees(texts: Sequence[str]) -> int:
    """The number of pairs, once groups and similarities are those of brute force."""
    found, every = near_pairs(texts), brute_force(texts)
    assert all(every[pair.first, pair.second] == pytest.approx(pair.jaccard) for pair in found)
    assert groups([pair[:2] for pair in found]) == groups([*every])
    assert len(found) == sum(len(group) - 1 for group in groups([*every]))
    return len(found)


def varied(rng: random.Random, n: int, vocabulary: int) -> list[str]:
    """Texts of which some are others with words changed, left out or added."""
    names = [f"w{i}" for i in range(vocabulary)]
    texts = [rng.choices(names, k=rng.randint(0, 40)) for _ in range(n // 2)]
    while len(texts) < n:
        text = list(rng.choice(texts))
        for _ in range(rng.randint(0, 3)):
            at = rng.randint(0, len(text))
            text[at : at + rng.randint(0, 1)] = [rng.choice(names)][: rng.randint(0, 1)]
        texts.append(text)
    rng.shuffle(texts)
    return [" ".join(text) for text in texts]


def test_pairs_by_hand() -> None:
    """Of 14 words 10 shingles; another last word leaves 9 of 11, another word in the middle 5 of 15."""
    text = "a b c d e f g h i j k l m n"
    last, middle = text[:-1] + "x", text.replace("g", "x")
    assert near_pairs([text, last]) == [Near(0, 1, pytest.approx(9 / 11))]
    assert near_pairs([text, middle]) == []
    assert near_pairs([text, middle, "A, b c-d e f g h i j k l m N."]) == [Near(0, 2, 1.0)]
    # 13 words have 9 shingles, and 8 of 10 is the least; 12 words 7 of 9.
    assert near_pairs(["a b c d e f g h i j k l m", "a b c d e f g h i j k l x"]) == [Near(0, 1, 0.8)]
    assert near_pairs(["a b c d e f g h i j k l", "a b c d e f g h i j k x"]) == []


def test_short_texts_are_equal_or_not_near() -> None:
    assert near_pairs(["Who?", "who", "Who was", "", "!", "", "Who was she"]) == [Near(0, 1, 1.0)]
    assert near_pairs([]) == []


def test_a_group_has_a_pair_less_than_texts() -> None:
    """Each is near the one before it alone, and the third stands there twice."""
    names = [f"w{i}" for i in range(40)]
    chain = [" ".join(names[i : i + 30]) for i in range(0, 6, 2)]  # 24 of 28 shingles shared, then 22 of 30
    assert {*brute_force(chain)} == {(0, 1), (1, 2)}
    assert [pair[:2] for pair in near_pairs([*chain, chain[2]])] == [(0, 1), (1, 2), (2, 3)]


def test_known_texts_are_compared_with_the_others_alone() -> None:
    text = "a b c d e f g h i j k l m n"
    other = "q r s t u v w"
    texts = [text, text, other, f"{text} o", f"{text} o", other, "p", "p"]
    # 10 of 11 shingles; the two last are equal, but not known.
    like = pytest.approx(10 / 11)
    assert near_pairs(texts, known=3) == [Near(0, 3, like), Near(0, 4, like), Near(2, 5, 1.0)]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text("ab ", max_size=24), max_size=12), st.integers(0, 2**32))
def test_groups_are_those_of_brute_force(texts: list[str], seed: int) -> None:
    agrees(texts)
    agrees(varied(random.Random(seed), 12, 6))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 14))
def test_matches_of_known_texts_are_those_of_brute_force(seed: int, known: int) -> None:
    texts = varied(random.Random(seed), 14, 500)
    every = {pair: of for pair, of in brute_force(texts).items() if pair[0] < known <= pair[1]}
    found = near_pairs(texts, known) if known else []
    assert [pair.second for pair in found] == sorted({second for _, second in every})
    assert all(every[pair[:2]] == pytest.approx(pair.jaccard) for pair in found)


def test_a_thousand_texts_over_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near, "_BLOCK", 500)
    monkeypatch.setattr(near, "_LEAST_BITS", 2)
    monkeypatch.setattr(near, "_MOST_BITS", 4)  # sixteen slots for all frequencies: order, and no more
    assert agrees(varied(random.Random(1), 1000, 5000)) > 150


def test_texts_that_all_look_alike_take_no_quadratic_time() -> None:
    """Twenty thousand forms that differ in a number are 200 million pairs, and one group."""
    form = " ".join(f"word{i}" for i in range(60))
    texts = [f"{form} number {i}" for i in range(20_000)]
    start = time.process_time()
    assert len(near_pairs(texts)) == 19_999
    assert time.process_time() - start < 20
