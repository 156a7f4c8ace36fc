import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.retrieval.retrievers._analysis import fold


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Plain ASCII, as it IS.", "Plain ASCII, as it IS."),
        ("Café", "cafe"),
        ("Cafe\u0301", "cafe"),
        ("ｃａｆé", "cafe"),
        ("Straße", "strasse"),
        ("Øresund, Łódź, Æneid", "oresund, lodz, aeneid"),
        ("İstanbul", "istanbul"),
        ("Einstein’s", "einstein's"),
        ("co\u00adoperate", "cooperate"),
        ("H₂O", "h2o"),
        ("one\x00two\nthree", "one two three"),
        ("a — b", "a   b"),
    ],
)
def test_folded_to_ascii(text, folded):
    assert fold(text) == folded


def words(text):
    return fold(text).split()


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


def test_words_without_ascii_letters_are_codes_that_no_stemmer_or_length_limit_touches():
    codes = words("Москва и Минск कि")
    assert len(codes) == 4
    for code in codes:
        assert code.isascii()
        assert code.isalpha()
        assert code.endswith("q")
        assert len(code) == 15
    assert words("北京") == ["xsfmxkvyrmfwjqq"]  # what stored indexes hold


def test_scripts_without_spaces_are_pairs_of_characters():
    assert set(words("北京")) <= set(words("我在北京大学"))
    assert len(words("北京大学")) == 3
    assert len(words("北")) == 1
    assert set(words("서울")) <= set(words("서울은"))


def test_words_of_mixed_scripts_are_split_where_the_script_changes():
    assert words("TGFβ")[0] == "tgf"
    assert words("TGFβ")[1] in words("tgf β receptor")


@given(st.text())
def test_any_text_becomes_printable_ascii(text):
    folded = fold(text)
    assert folded.isascii()
    assert folded == "" or folded.isprintable()
    assert fold(folded) == folded
