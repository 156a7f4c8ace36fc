"""Measures with folded spellings: brute force over every prefix, and what is part of their identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import identity
from ragauge.measures import Subsequence, Substring, Words
from ragauge.texts.folding import FOLDS, checked_folds, fold_text

PIECES = [*"ab AB’'-–e\u0301\u00ad\u1100\u1161ﬁß\n&;", "-\n", "&amp;", "&#39;", "&rsquo;", "&nope;", "amp;"]
TEXT = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)
SOME = st.lists(st.sampled_from(FOLDS), min_size=1, unique=True)
MEASURES = (Substring, Subsequence, Words)


@pytest.mark.parametrize("measure", MEASURES)
@settings(max_examples=80, deadline=None)
@given(evidence=st.lists(TEXT, min_size=1, max_size=2), context=TEXT, folds=SOME, data=st.data())
def test_a_prefix_is_cut_first_and_folded_then(
    measure: Callable[..., Any], evidence: list[str], context: str, folds: list[str], data: st.DataObject
) -> None:
    names = checked_folds("fold", folds)
    evidence = [f"{text}a" for text in evidence]  # something to match
    ends = np.array(sorted(data.draw(st.lists(st.integers(0, len(context)), max_size=5))), dtype=np.int64)
    found = measure(1, fold=folds).score(evidence, context, ends)
    parts = [fold_text(text, names) for text in evidence]
    for j, end in enumerate(ends.tolist()):
        alone = fold_text(context[:end], names)
        expected = measure(1).score(parts, alone, np.array([len(alone)]))
        assert found[:, j].tolist() == expected[:, 0].tolist()


@pytest.mark.parametrize(
    ("fold", "context"),
    [
        ("quotes", "he said: “it’s a well-known fact”"),
        ("dashes", 'he said: "it\'s a well–known fact"'),
        ("soft_hyphens", 'he said: "it\'s a well-\u00adknown fact"'),
        ("case", 'HE SAID: "IT\'S A WELL-KNOWN FACT"'),
        ("entities", "he said: &quot;it&#39;s a well-known fact&quot;"),
        ("line_hyphens", 'he said: "it\'s a well-kno-\nwn fact"'),
        ("nfkc", 'he said: "it\'s a well-known \ufb01act"'.replace("\ufb01", "\uff46")),
    ],
)
def test_each_fold_finds_what_its_spelling_hid(fold: str, context: str) -> None:
    evidence, end = ['"it\'s a well-known fact"'], np.array([len(context)])
    assert Substring().score(evidence, context, end)[0, 0] < 0.85
    assert Substring(fold=[fold]).score(evidence, context, end)[0, 0] == 1.0  # type: ignore[arg-type]


def test_evidence_that_folds_to_nothing_is_an_error() -> None:
    with pytest.raises(DataError, match="has nothing to match"):
        Substring(fold=("soft_hyphens",)).score(["\u00ad"], "abc", np.array([3]))


def test_folds_and_correction_are_part_of_the_identity_and_their_defaults_are_not() -> None:
    assert identity(Substring()) == {
        "component": "substring",
        "version": 1,
    }  # as before there were any
    assert identity(Substring(fold=["case", "nfkc"])) == identity(Substring(fold=["nfkc", "case"]))  # type: ignore[arg-type]
    assert identity(Substring(fold=("case",)))["fold"] == ["case"]
    assert identity(Substring(correct="floor"))["correct"] == "floor"
    with pytest.raises(ConfigError, match=r"measure\.correct='half': allowed are none, floor"):
        Substring(correct="half")
