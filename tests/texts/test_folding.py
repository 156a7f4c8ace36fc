"""Folded spellings: by hand, and every prefix against the fold of that prefix alone, on any Unicode text."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragauge.contract.errors import ConfigError
from ragauge.texts.folding import FOLDS, checked_folds, fold_prefixes, fold_text

# Letters with marks apart, syllables in parts, ligatures, half-width kana, what casefolding makes longer.
JOINS = st.text(
    st.sampled_from(
        "ae\u0301\u0327\u0344 \u1100\u1161\u11a8\u00ad\u200bﬁßİ‘”—-'\"ŉ\uff76\uff9e\u0dd9\u0dcf\u00b4\u2026Σ\n"
    ),
    max_size=25,
)
ANY = st.text(st.characters(), max_size=25)
SPANS = st.lists(st.sampled_from([*"ab e\u0301-\n&;", "&lt;", "&#8217;", "&amp;"]), max_size=20).map("".join)
SOME = st.lists(st.sampled_from(FOLDS), unique=True).map(lambda names: checked_folds("fold", names))


def by_hand(text: str, folds: tuple[str, ...]) -> str:
    """The same in another way: character by character."""
    if "entities" in folds:
        for entity, named in {
            "&lt;": "<",
            "&#8217;": "’",
            "&amp;": "&",
        }.items():
            text = text.replace(entity, named)
    if "line_hyphens" in folds:
        for at in range(len(text) - 1, 0, -1):
            line, _, behind = text[at + 1 :].partition("\n")
            behind = behind.lstrip(" \t")
            is_end = text[at] in "-\u00ad\u2010" and not line.removesuffix("\r").strip(" \t")
            if (
                is_end
                and "\n" in text[at:]
                and text[at - 1].isalpha()
                and behind[:1].isalpha()
                and behind[:1].islower()
            ):
                text = text[:at] + behind
    if "soft_hyphens" in folds:
        text = "".join(c for c in text if c not in "\u00ad\u200b\u2060\ufeff")
    if "quotes" in folds:
        text = "".join("'" if c in "`´ʹʻʼ‘’‚‛′‵‹›＇" else '"' if c in "«»ʺ“”„‟″‶〝〞〟＂" else c for c in text)
    if "dashes" in folds:
        text = "".join("-" if c in "‐‑‒–—―⁃−⸺⸻︱︲﹘﹣－" else c for c in text)
    if "nfkc" in folds:
        text = unicodedata.normalize("NFKC", text)
    return text.casefold() if "case" in folds else text


@pytest.mark.parametrize(
    ("name", "text", "folded"),
    [
        ("quotes", "“Don’t,” «he» said: 5′ 3″ `so`", '"Don\'t," "he" said: 5\' 3" \'so\''),
        ("dashes", "1914–18 — a co‑op at −3", "1914-18 - a co-op at -3"),
        ("soft_hyphens", "in\u00adfor\u00adma\u200btion\ufeff", "information"),
        ("nfkc", "ﬁne e\u0301 ｗｉｄｅ", "fine é wide"),
        (
            "entities",
            "Tom &amp; Jerry &#39;run&#39; &lt;fast&gt; &amp;lt; &nope; &amp",
            "Tom & Jerry 'run' <fast> &lt; &nope; &amp",
        ),
        (
            "line_hyphens",
            "infor-\nmation, co\u00ad\r\n op, Anglo-\nSaxon, 3-\nfold",
            "information, coop, Anglo-\nSaxon, 3-\nfold",
        ),
        ("case", "Straße ΣΑΣ", "strasse σασ"),
    ],
)
def test_what_is_folded(name: str, text: str, folded: str) -> None:
    assert fold_text(text, (name,)) == folded
    assert fold_text(text, ()) == text


def test_the_order_is_one_whatever_was_asked_for() -> None:
    assert checked_folds("fold", ["case", "quotes", "case"]) == ("quotes", "case")
    assert checked_folds("fold", []) == ()
    # A prime is a quotation mark before it is taken apart into two.
    assert fold_text("5″", checked_folds("fold", ["nfkc", "quotes"])) == '5"'


@pytest.mark.parametrize("wrong", [["accents"], "case", None, [1], 3])
def test_another_name_is_refused_with_those_that_are_allowed(wrong: object) -> None:
    with pytest.raises(ConfigError, match=r"measure\.fold=.*soft_hyphens, quotes, dashes, nfkc, case") as error:
        checked_folds("measure.fold", wrong)
    assert "\n" not in str(error.value)


def test_a_prefix_that_ends_before_an_accent_has_the_bare_letter() -> None:
    folded, ends, own = fold_prefixes("cafe\u0301 au", np.array([3, 4, 5, 8]), ("nfkc",))
    assert folded == "café au"
    assert own == {1: "cafe"}
    assert [folded[: ends[j]] for j in (0, 2, 3)] == ["caf", "café", "café au"]


def test_a_prefix_without_an_accent_that_comes_to_stand_earlier_has_a_text_of_its_own() -> None:
    folded, ends, own = fold_prefixes("x\u0301\u0327", np.array([1, 2, 3]), ("nfkc",))
    assert folded == "x\u0327\u0301"
    assert own == {1: "x\u0301"}
    assert ends.tolist() == [1, 1, 3]


@settings(max_examples=400, deadline=None)
@given(JOINS | ANY | SPANS, SOME, st.data())
def test_every_prefix_is_what_that_prefix_becomes_by_itself(
    text: str, folds: tuple[str, ...], data: st.DataObject
) -> None:
    ends = np.array(sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6))), dtype=np.int64)
    folded, found, own = fold_prefixes(text, ends, folds)
    assert (np.diff(found) >= 0).all()
    assert not len(found) or 0 <= found[0] <= found[-1] <= len(folded)
    for j, end in enumerate(ends.tolist()):
        assert own.get(j, folded[: found[j]]) == by_hand(text[:end], folds) == fold_text(text[:end], folds)
