"""ROUGE-L recall: by hand, and against the dynamic programme over the words of every prefix."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.contract.errors import ConfigError, DataError
from ragauge.measures import Words
from ragauge.measures.matching import _folds

TEXT = st.text(st.characters() | st.sampled_from("ab  _.AÀß\u0345İς1"), max_size=40)


def words(text: str) -> list[str]:
    """Longest runs of letters and digits, casefolded."""
    spaced = "".join(char if char.isalnum() else "\0" for char in text)
    return [word.casefold() for word in spaced.split("\0") if word]


def longest_common_subsequence(a: list[str], b: list[str]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        before = 0
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], before + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]


def score(evidence: str, context: str, *ends: int) -> list[float]:
    return Words().score([evidence], context, np.array(ends or [len(context)]))[0].tolist()


def test_words_in_order_over_the_words_of_the_evidence() -> None:
    # police ... the gunman: 3 of 4 words (the example of the ROUGE paper has killed and kill differ).
    assert score("police killed the gunman", "police kill the gunman") == [0.75]
    assert score("police killed the gunman", "the gunman kill police") == [0.5]
    for evidence, context in (("The end.", "THE - end?"), ("Straße", "STRASSE"), ("snake_case", "snake case")):
        assert score(evidence, context) == [1]
    assert score("a", "") == score("a", "...") == [0]


def test_a_word_that_the_end_cuts_is_another_word() -> None:
    context = "the international cat"
    assert score("the inter cat", context, 3, 9, 10, 21) == [1 / 3, 2 / 3, 1 / 3, 2 / 3]


def test_a_word_cut_twice_and_whole() -> None:
    assert score("abcd", "abcdef", 1, 4, 5, 6) == [0.0, 1.0, 0.0, 0.0]
    assert score("abcdef", "abcdef", 1, 4, 5, 6) == [0.0, 0.0, 0.0, 1.0]


def test_evidence_without_a_word_is_an_error() -> None:
    with pytest.raises(DataError, match=r"measure words: evidence '\?!' has nothing to match"):
        Words().score(["a", "?!"], "abc", np.array([3]))


def test_words_are_not_shared_between_topics() -> None:
    found = Words().score_all([["a b"], ["c a"]], ["a", "a c"], [np.array([1]), np.array([1, 3])])
    assert [of_context.tolist() for of_context in found] == [[[0.5]], [[0.5, 0.5]]]


def test_threads_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"measure\.threads=True"):
        Words(True)


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXT, max_size=3), TEXT, st.data())
def test_equal_to_the_dynamic_programme_on_any_text(evidence: list[str], context: str, data: st.DataObject) -> None:
    evidence = [text for text in evidence if words(text)]
    ends = sorted(data.draw(st.lists(st.integers(0, len(context)), max_size=4)))
    found = Words().score(evidence, context, np.array(ends, dtype=np.int64))
    for i, text in enumerate(evidence):
        for j, end in enumerate(ends):
            expected = longest_common_subsequence(words(text), words(context[:end])) / len(words(text))
            assert found[i, j] == expected


# Letters that fold to several characters or to those of others, a mark that folds to a letter, marks that do
# not, digits of other scripts, lone surrogates, and what words end at.
ODD = "aAßẞsSİiŉʼnΐΐςσΣ\u0345ᾳα\u0301\u0307ǰﬃ٣３²½五ก\u0e31\ud800\udfff\U00010400\U0001f600_ -.\n"
ODD_TEXT = st.lists(
    st.sampled_from(["ß", "ss", "ﬃ", "FFI", "ŉ", "ʼn", "Σίσυφος", "ΣΊΣΥΦΟΣ", " ", "a\u0345", "αι", "ᾳ"])
    | st.text(st.characters() | st.sampled_from(ODD), max_size=6),
    max_size=12,
).map("".join)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.lists(ODD_TEXT, max_size=3), ODD_TEXT), min_size=1, max_size=4), st.booleans())
def test_equal_to_the_dynamic_programme_at_every_end_of_several_topics(
    topics: list[tuple[list[str], str]], shared: bool
) -> None:
    evidence = [[text for text in texts if words(text)] for texts, _ in topics]
    contexts = [context + "".join(texts).swapcase() * shared for texts, context in topics]
    ends = [np.arange(len(context) + 1) for context in contexts]
    found = Words().score_all(evidence, contexts, ends)
    for texts, context, values in zip(evidence, contexts, found, strict=True):
        expected = [
            [longest_common_subsequence(words(text), words(context[:end])) / len(words(text))
             for end in range(len(context) + 1)]
            for text in texts
        ]  # fmt: skip
        assert values.tolist() == expected


def test_every_character_is_folded_as_python_does() -> None:
    folds, long_folds = _folds()
    several = ["".join(map(chr, of_one[of_one > 0])) for of_one in long_folds]
    for code, fold in enumerate(folds.tolist()):
        char = chr(code)
        folded = (chr(fold) if fold <= sys.maxunicode else several[fold - len(folds)]) if fold else ""
        assert folded == (char.casefold() if char.isalnum() else ""), hex(code)


def test_many_words_that_differ_little() -> None:
    """More words than the smallest table has slots, many of the same length, in one slot by their hash."""
    rng = random.Random(0)
    texts = [" ".join("".join(rng.choices("aAbB", k=rng.randint(1, 7))) for _ in range(400)) for _ in "12"]
    ends = np.arange(0, len(texts[1]), 100)
    [found] = Words().score([texts[0]], texts[1], ends)
    expected = [longest_common_subsequence(words(texts[0]), words(texts[1][:end])) / 400 for end in ends]
    assert found.tolist() == expected


def test_threads_and_batches_change_nothing() -> None:
    rng = random.Random(0)
    contexts = ["".join(rng.choices("aÀß .", k=rng.randint(0, 3000))) for _ in range(400)]
    evidence = [["".join(rng.choices("aàs ", k=30)) for _ in range(rng.randint(0, 3))] for _ in contexts]
    ends = [np.array([len(text) // 2, len(text)][: rng.randint(0, 2)], dtype=int) for text in contexts]
    alone = [Words(1).score(*one) for one in zip(evidence, contexts, ends, strict=True)]
    for threads in (1, 3):
        together = Words(threads).score_all(evidence, contexts, ends)
        assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))
