from importlib.metadata import version

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
        ("می\u200cخواهم", "میخواهم"),  # a joiner inside a word separates nothing
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


# Of each language: stemmed, stop words left out; a text, its terms, and those of it as a query; ~ is a stop word.
TABLE = [
    ("english", True, True, "The Cat's whiskers describe the RUNNING cafés", "the~ cat whisker describ~ the~ run cafe"),
    ("english", False, False, "The Cat's whiskers", "the cat whiskers"),
    ("german", True, True, "Die Häuser der Straße am Fluß", "die~ haus der~ strass am~ fluss"),
    ("german", False, True, "Die Häuser der Straße", "die~ hauser der~ strasse"),
    ("french", True, True, "L’histoire des étoiles", "l~ histoir de~ etoil"),
    ("turkish", True, True, "İSTANBUL'da IŞIKLAR ve evler", "istanbul da~ isik ve~ ev"),
    ("russian", True, True, "Ёлки и МОСКВА", "елк и~ москв"),
    ("hindi", True, True, "किताबें और घर", "किताब और~ घर"),
    ("vietnamese", True, True, "những ngôi nhà của Việt Nam", "nhung~ ngoi nha cua~ viet nam"),
    ("other", True, True, "Die Häuser's Café", "die hauser s cafe"),
    ("auto", True, True, "Die Häuser", "die hauser"),
]


@pytest.mark.parametrize(("language", "stems", "stops", "text", "told"), TABLE)
def test_terms_of_a_language(language, stems, stops, text, told):
    analysis = Analysis(language, stems, stops)
    assert analysis.of_text(text) == told.replace("~", "").split()
    assert analysis.of_query(text) == [term for term in told.split() if not term.endswith("~")]
    snowball = version("snowballstemmer") if stems and language not in ("vietnamese", "other") else None
    assert analysis.identity == {"language": language, "snowball": snowball}


def test_english_words():
    english = Analysis()
    assert english.of_text("The runners' résumés, Anna's CAFÉ: don’t!") == [
        "the", "runner", "resum", "anna", "cafe", "don", "t",
    ]  # fmt: skip
    assert english.of_query("The runners' résumés, Anna's CAFÉ: don’t!") == ["runner", "resum", "anna", "cafe"]
    assert english.of_text("HIV-1, x², ｆｕｌｌ, Москва 北京大 a_b") == [
        "hiv", "1", "x2", "full", "москва", "北京", "京大", "a", "b",
    ]  # fmt: skip


def test_what_is_not_a_word_of_the_language_stays():
    german = Analysis("german")
    assert german.of_text("H₂O, 北京大学 und 3,14!") == ["h2o", "北京", "京大", "大学", "und", "3", "14"]


def test_vowel_signs_are_part_of_their_word():
    assert Analysis("hindi", stems=False).of_query("हिन्दी की किताबें") == ["हिन्दी", "किताबें"]
