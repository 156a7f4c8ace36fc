"""The IR score's match: by hand, against a brute-force twin, and where it could go quadratic."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.contract.measures import Measure
from ragauge.measures import Substring, _kernels

ANY_TEXT = st.text(st.characters(), max_size=30)  # surrogates and all
FEW_LETTERS = st.text(st.sampled_from("ab \n\u00a0é\U0001f600"), max_size=60)


def fold(text: str) -> str:
    return " ".join(text.split())


def longest_common_substring(a: str, b: str) -> int:
    return max((n for i in range(len(a)) for n in range(1, len(a) - i + 1) if a[i : i + n] in b), default=0)


def score(evidence: str, context: str, *ends: int) -> list[float]:
    return Substring().score([evidence], context, np.array(ends or [len(context)]))[0].tolist()


@pytest.mark.parametrize(
    ("evidence", "context", "value"),
    [
        ("the fat cat sat.", "A cat sat down", 8 / 16),  # " cat sat"
        ("abc", "xxabcxx", 1), ("abc", "xyz", 0), ("abc", "", 0), ("abc", " \n", 0),
        ("abcdef", "abc def", 1 / 2),  # matches do not add up
        ("Abc.", "abc", 1 / 2),  # case and punctuation count
        ("abcdefgh", "cde", 3 / 8),
        ("\tone  two\n", "x one\u2003\r\ntwo x", 1), ("one two", " \n one \n two \n ", 1),
        # Characters are code points.
        ("e\u0301", "\u00e9", 0), ("e\u0301", "e", 1 / 2), ("\U0001f600\U0001f601", "\U0001f601", 1 / 2),
        ("\ud800x", "\ud800", 1 / 2),
    ],
)  # fmt: skip
def test_the_longest_piece_in_common_over_the_length_of_the_evidence(evidence: str, context: str, value: float) -> None:
    assert score(evidence, context) == [value]


def test_a_prefix_holds_what_stands_before_its_end() -> None:
    assert score("abcd", "xxabcdxx", 0, 2, 3, 5, 6, 8) == [0.0, 0.0, 0.25, 0.75, 1.0, 1.0]


def test_a_match_that_the_end_cuts_goes_on_in_the_next_prefix() -> None:
    text = "0123456789" * 3
    context = "no " + text + " no"
    found = score(text, context, *range(len(context) + 1))
    assert found == [min(max(end - 3, 0), 30) / 30 for end in range(len(context) + 1)]


def test_a_prefix_is_folded_by_itself() -> None:
    # "one " is folded to "one": the space counts only when something follows it.
    assert score("one two", "one  two", 3, 4, 5, 6) == [3 / 7, 3 / 7, 3 / 7, 5 / 7]


def test_every_white_space_of_unicode_is_folded_and_nothing_else() -> None:
    for code in range(sys.maxunicode + 1):
        if chr(code).isspace():
            assert score("a b", f"a{chr(code)}b") == [1.0], hex(code)
    for other in ("\u200b", "\ufeff", "\u2060", "\u180e", "_"):
        assert score("a b", f"a{other}b") == [1 / 3]


def test_evidence_that_repeats_counts_every_time() -> None:
    assert Substring().score(["ab", "zz", "ab"], "xab", np.array([2, 3])).tolist() == [
        [0.5, 1.0],
        [0.0, 0.0],
        [0.5, 1.0],
    ]


def test_no_evidence_and_no_ends() -> None:
    assert Substring().score([], "abc", np.array([1, 2])).shape == (0, 2)
    assert Substring().score(["a"], "abc", np.array([], dtype=int)).shape == (1, 0)
    assert Substring().score_all([], [], []) == []


@pytest.mark.parametrize("blank", ["", " ", "\n\u3000"])
def test_evidence_of_nothing_is_an_error(blank: str) -> None:
    with pytest.raises(DataError, match="has nothing to match"):
        Substring().score(["a", blank], "abc", np.array([3]))


@pytest.mark.parametrize("ends", [[2, 1], [-1], [4]])
def test_ends_that_cannot_be_are_an_error(ends: list[int]) -> None:
    with pytest.raises(ValueError, match="ends must rise"):
        Substring().score(["a"], "abc", np.array(ends))


def test_ends_need_not_rise_from_context_to_context() -> None:
    found = Substring().score_all(
        [["a"], ["b"], ["c"]], ["xa", "", "c"], [np.array([1, 2]), np.array([], int), np.array([0, 1])]
    )
    assert [of_context.tolist() for of_context in found] == [[[0.0, 1.0]], [[]], [[0.0, 1.0]]]


def test_all_contexts_must_have_their_evidence_and_ends() -> None:
    with pytest.raises(ValueError, match="1 lists of evidence, 2 contexts"):
        Substring().score_all([["a"]], ["a", "b"], [np.array([1])])


def test_threads_and_batches_change_nothing() -> None:
    rng = random.Random(0)
    contexts = ["".join(rng.choices("abc ", k=rng.randint(0, 3000))) for _ in range(400)]
    evidence = [["".join(rng.choices("abc", k=30)) for _ in range(rng.randint(0, 3))] for _ in contexts]
    ends = [np.array([len(text) // 2, len(text)]) for text in contexts]
    alone = [Substring(1).score(*one) for one in zip(evidence, contexts, ends, strict=True)]
    for threads in (1, 3):
        together = Substring(threads).score_all(evidence, contexts, ends)
        assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_threads_are_not_part_of_what_comes_out() -> None:
    assert identity(Substring(1)) == identity(Substring(2))
    with pytest.raises(ConfigError, match=r"measure\.threads=-1"):
        Substring(-1)
    measure: Measure = Substring()
    assert measure.name == "substring"


@settings(max_examples=150, deadline=None)
@given(st.lists(ANY_TEXT | FEW_LETTERS, max_size=3), ANY_TEXT | FEW_LETTERS, st.data())
def test_equal_to_brute_force_on_any_text(evidence: list[str], context: str, data: st.DataObject) -> None:
    evidence = [text for text in evidence if fold(text)]
    if evidence and data.draw(st.booleans()):
        context += data.draw(st.sampled_from(evidence)) + context
    ends = sorted(data.draw(st.lists(st.integers(0, len(context)), max_size=5)))
    found = Substring().score(evidence, context, np.array(ends, dtype=np.int64))
    for i, text in enumerate(evidence):
        for j, end in enumerate(ends):
            expected = longest_common_substring(fold(text), fold(context[:end])) / len(fold(text))
            assert found[i, j] == expected


# --- what repeats itself ------------------------------------------------------------------------------

REPETITIVE = {
    "one letter, broken once": ("a" * 1000 + "b" + "a" * 1000, "a" * 20_000),
    "two letters": ("ab" * 500 + "c" + "ab" * 500, "ab" * 10_000 + "ba" * 10),
    "a period": (("abcdefg" * 200) + "x" + "abcdefg" * 100, "gfedcba" + "abcdefg" * 3000),
}


@pytest.mark.parametrize("name", REPETITIVE)
def test_repetitive_texts_are_matched_by_the_automaton(name: str) -> None:
    evidence, context = REPETITIVE[name]
    ends = np.array([0, 7, 500, 5000, 19_000, 20_000, len(context)])
    found = Substring().score([evidence], context, ends)[0]
    for end, value in zip(ends, found, strict=True):
        # Brute force by bisection: if a match of n characters stands there, so does one of n - 1.
        low, high = 0, len(evidence)
        while low < high:
            n = (low + high + 1) // 2
            if any(evidence[i : i + n] in context[:end] for i in range(len(evidence) - n + 1)):
                low = n
            else:
                high = n - 1
        assert value == low / len(evidence)


def test_the_automaton_takes_over_before_the_match_that_the_end_cuts() -> None:
    # The first look at the run of a's costs more than is allowed, and the prefix ends within the run.
    assert score("a" * 200, "xxx" + "a" * 200, 103, 203) == [100 / 200, 1.0]


def test_the_cost_of_repetitive_texts_does_not_multiply() -> None:
    """20,000 x 200,000 characters would be 4e9 steps, and the test would not seem to end."""
    evidence = "a" * 10_000 + "b" + "a" * 10_000
    assert score(evidence, "a" * 200_000) == [10_000 / 20_001]


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("abc"), min_size=1, max_size=25), st.text(st.sampled_from("abcd"), max_size=60))
def test_the_automaton_alone_finds_the_same(pattern: str, text: str) -> None:
    ends = np.arange(len(text) + 1)
    out = np.empty(len(ends))
    _kernels._longest_substrings_by_automaton(
        np.array([ord(c) for c in pattern], dtype=np.uint32),
        np.array([ord(c) for c in text], dtype=np.uint32),
        ends, 0, 0, 0, out,
    )  # fmt: skip
    assert out.tolist() == [longest_common_substring(pattern, text[:end]) for end in ends]


def test_the_kernels_are_not_compiled_again_in_the_next_process() -> None:
    program = """
import numpy as np
from ragauge.measures import Substring
from ragauge.measures import _kernels
Substring().score(["a"], "a", np.array([1]))
print(sum(_kernels.substrings.stats.cache_misses.values()))
"""
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True) for _ in "12"]
    assert runs[1].returncode == 0, runs[1].stderr
    assert runs[1].stdout.strip() == "0"


def test_importing_the_measures_does_not_import_numba() -> None:
    program = "import sys, ragauge.measures; print([m for m in ('numba', 'ir_measures') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
