"""The longest common subsequence of characters: by hand and against the dynamic programme."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.contract.errors import ConfigError, DataError
from ragauge.measures import Subsequence

ANY_TEXT = st.text(st.characters(), max_size=30)
FEW_LETTERS = st.text(st.sampled_from("ab \n\u00a0é\U0001f600"), max_size=60)


def fold(text: str) -> str:
    return " ".join(text.split())


def longest_common_subsequence(a: str, b: str) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        before = 0
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], before + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]


def score(evidence: str, context: str, *ends: int) -> list[float]:
    return Subsequence().score([evidence], context, np.array(ends or [len(context)]))[0].tolist()


def test_gaps_are_allowed_the_order_is_not() -> None:
    assert score("abc", "a-b-c") == [1.0]
    assert score("abc", "cba") == [1 / 3]
    assert score("abc", "") == [0.0]


def test_a_prefix_holds_what_stands_before_its_end() -> None:
    assert score("abcd", "xaxbxcxd", 0, 1, 2, 4, 7, 8) == [0.0, 0.0, 0.25, 0.5, 0.75, 1.0]


def test_a_prefix_is_folded_by_itself() -> None:
    assert score("one two", " one \n two", 4, 6, 8) == [3 / 7, 3 / 7, 5 / 7]


def test_it_cannot_tell_a_long_unrelated_text_from_the_evidence() -> None:
    """Why it is not the default: shuffled letters hold nearly every sentence."""
    rng = random.Random(0)
    noise = "".join(rng.choices("etaoinshrdlu etaoin", k=4000))
    [value] = score("the order of the letters is no order at all", noise)
    assert value > 0.9


@pytest.mark.parametrize("length", [1, 63, 64, 65, 127, 128, 129, 700])
def test_evidence_around_the_width_of_a_machine_word(length: int) -> None:
    rng = random.Random(length)
    evidence = "".join(rng.choices("abcd", k=length))
    context = "".join(rng.choices("abcde", k=900))
    ends = np.array([0, 1, 100, 500, 900])
    found = Subsequence().score([evidence], context, ends)[0]
    expected = [longest_common_subsequence(evidence, context[:end]) / length for end in ends]
    assert found.tolist() == expected


def test_evidence_of_nothing_is_an_error() -> None:
    with pytest.raises(DataError, match="measure subsequence: evidence ' ' has nothing to match"):
        Subsequence().score([" "], "abc", np.array([3]))


def test_threads_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"measure\.threads='2'"):
        Subsequence("2")  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None)
@given(st.lists(ANY_TEXT | FEW_LETTERS, max_size=3), ANY_TEXT | FEW_LETTERS, st.data())
def test_equal_to_the_dynamic_programme_on_any_text(evidence: list[str], context: str, data: st.DataObject) -> None:
    evidence = [text for text in evidence if fold(text)]
    ends = sorted(data.draw(st.lists(st.integers(0, len(context)), max_size=4)))
    found = Subsequence().score(evidence, context, np.array(ends, dtype=np.int64))
    for i, text in enumerate(evidence):
        for j, end in enumerate(ends):
            expected = longest_common_subsequence(fold(text), fold(context[:end])) / len(fold(text))
            assert found[i, j] == expected
