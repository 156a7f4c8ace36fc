import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.texts.terms import Analysis, fold


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Plain ASCII, as it IS.", "plain ascii, as it is."),
        ("Café", "cafe"),
        ("Cafe\u0301", "cafe"),
        ("ｃａｆé", "cafe"),
        ("Straße", "strasse"),
        ("Øresund, Łódź, Æneid", "oresund, lodz, aeneid"),
        ("İstanbul", "istanbul"),
        ("Einstein’s", "einstein's"),
        ("co\u00adoperate", "cooperate"),
        ("H₂O", "h2o"),
        ("a — b", "a   b"),
    ],
)
def test_folded(text, folded):
    assert fold(text) == folded


def words(text):
    return Analysis("other").of_text(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Москва", "МОСКВА"),
        ("ёлка", "елка"),
        ("Ἀθῆναι", "αθηναι"),
        ("كِتَاب", "كتاب"),
        ("ﷲ", "الله"),
        ("ガ", "カ\u3099"),
        ("한국", "한국"),
        ("µ", "μ"),
    ],
)
def test_the_same_word(one, other):
    assert words(one) == words(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Москва", "Минск"),
        ("が", "か"),
        ("कि", "की"),
        ("北京", "東京"),
    ],
)
def test_another_word(one, other):
    assert set(words(one)).isdisjoint(words(other))


def test_scripts_without_spaces_are_pairs_of_characters():
    assert set(words("北京")) <= set(words("我在北京大学"))
    assert len(words("北京大学")) == 3
    assert len(words("北")) == 1
    assert set(words("서울")) <= set(words("서울은"))


def test_a_word_of_mixed_scripts_is_one_word():
    assert words("TGFβ") == ["tgfβ"]
    assert words("TGF-β") == ["tgf", "β"]
    assert words("Azərbaycan") == ["azərbaycan"]


@given(st.text())
def test_folding_twice_is_folding_once(text):
    folded = fold(text)
    assert fold(folded) == folded
