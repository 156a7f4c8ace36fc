"""BM25 by language: inflected words find each other, stop words find nothing; and what holds of Chinese."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import identity
from ragauge.retrieval.retrievers import BM25
from ragauge.texts.terms import LANGUAGES, Analysis
from ragauge.texts.words import STOP_WORDS


def ranking(folder: Path, texts: dict[str, str], query: str, **fields: object) -> list[str]:
    """The docnos that BM25 finds for the query."""
    folder.mkdir(parents=True, exist_ok=True)
    retriever = BM25(**fields)  # type: ignore[arg-type]
    chunks = pd.DataFrame({"docno": list(texts), "text": list(texts.values())}, dtype="str")
    retriever.build_index(chunks, folder)
    topics = pd.DataFrame({"qid": ["q"], "query": [query]})
    found: list[str] = retriever.transformer(chunks, folder)(topics)["docno"].tolist()
    return found


def test_an_index_is_known_by_its_language_and_its_stemmer() -> None:
    assert "language" not in identity(BM25())
    snowball = version("snowballstemmer")
    assert BM25().index_identity() == {"index": "bm25", "version": 2, "language": "english", "snowball": snowball}
    assert identity(BM25(language="german"))["language"] == "german"
    assert BM25(language="german").index_identity()["language"] == "german"
    assert Analysis("chinese").identity["snowball"] is None
    assert Analysis(stems=False).identity["snowball"] is None


# A question whose words are inflected otherwise in the text that answers it, and another text of its words'
# neighbourhood that shares only stop words with the question.
INFLECTED = {
    "danish": ("Hvor ligger de store huse?", "Et stort hus ved floden.", "Hvor er de små heste?"),
    "dutch": (
        "Welke schilders woonden in deze huizen?",
        "De schilder woonde in een huis.",
        "Welke is in deze?",
    ),
    "french": (
        "Quelles étaient les écoles nationales ?",
        "L'école nationale de la ville.",
        "Quelles étaient les fleurs ?",
    ),
    "german": ("Wer malte die Häuser der Städte?", "Ein Haus in der Stadt.", "Wer ist die Frau der Berge?"),
    "italian": ("Dove sono le chiese antiche?", "Una chiesa antica.", "Dove sono le barche?"),
    "norwegian": ("Hvor ligger de store fjellene?", "Et stort fjell i nord.", "Hvor er de små hestene?"),
    "portuguese": ("Onde estão as igrejas antigas?", "Uma igreja antiga.", "Onde estão as flores?"),
    "russian": ("Где находятся старые мосты?", "Старый мост через реку.", "Где эти лошади?"),
    "spanish": ("¿Dónde están las iglesias antiguas?", "Una iglesia antigua.", "¿Dónde están las flores?"),
    "swedish": ("Var ligger de stora husen?", "Ett stort hus i norr.", "Var är de små hästarna?"),
    "arabic": ("أين هي المدارس القديمة؟", "مدرسة قديمة في القاهرة.", "أين هي الخيول؟"),
    "finnish": ("Missä ovat vanhat talot?", "Vanha talo joen rannalla.", "Missä ovat pienet hevoset?"),
    "greek": ("Πού είναι τα παλιά σπίτια;", "Ένα παλιό σπίτι στο χωριό.", "Πού είναι τα άλογα;"),
    "hindi": ("पुराने मकान कहाँ हैं?", "एक पुराना मकान नदी के पास।", "घोड़े कहाँ हैं?"),
    "hungarian": ("Hol vannak a régi házak?", "Egy régi ház a folyónál.", "Hol vannak a lovak?"),
    "polish": ("Gdzie są stare domy?", "Dom nad rzeką.", "Gdzie są konie?"),
    "romanian": ("Unde sunt bisericile vechi?", "O biserică veche.", "Unde sunt florile?"),
    "turkish": ("Hangi EVLER daha büyük?", "Büyük bir evin bahçesi.", "Hangi atlar daha az?"),
}


@pytest.mark.parametrize("language", INFLECTED)
def test_inflected_words_find_each_other_and_stop_words_find_nothing(language: str, tmp_path: Path) -> None:
    query, answer, other = INFLECTED[language]
    texts = {"answer": answer, "other": other}
    assert ranking(tmp_path / "own", texts, query, language=language) == ["answer"]
    # Without the language's stop words the other text is found by them, too.
    found = ranking(tmp_path / "all", texts, query, language=language, stopwords="none")
    assert sorted(found) == ["answer", "other"]


def test_without_the_stemmer_inflected_words_are_different_words(tmp_path: Path) -> None:
    query, answer, other = INFLECTED["german"]
    texts = {"answer": answer, "other": other}
    assert ranking(tmp_path, texts, query, language="german", stemmer="none") == []


def test_every_language_has_a_stemmer_and_words_that_are_written_as_texts_are() -> None:
    assert {*INFLECTED, "vietnamese"} == set(STOP_WORDS) < set(LANGUAGES)
    for language, words in STOP_WORDS.items():
        of_it = Analysis(language, stems=False)
        for word in words:
            # In capitals and with a typographer's apostrophe behind it, too.
            assert of_it.of_query(word) == []
            capitals = word.replace("i", "İ").upper() if language == "turkish" else word.upper()
            assert of_it.of_query(f"{capitals}’") == []
            assert of_it.of_text(word) != []


def test_the_stop_words_are_those_of_the_language(tmp_path: Path) -> None:
    # "not" is an English stop word.
    assert ranking(tmp_path / "de", {"d": "Die Not war groß."}, "Not", language="german") == ["d"]
    assert ranking(tmp_path / "en", {"d": "Die Not war groß."}, "Not") == []


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            {"language": "klingon"},
            f"retriever.language='klingon': allowed are {', '.join(sorted(LANGUAGES))} or a code such as de",
        ),
        ({"stemmer": "krovetz"}, "retriever.stemmer='krovetz': allowed are snowball, none"),
        ({"stopwords": "lucene"}, "retriever.stopwords='lucene': allowed are language, none"),
    ],
)
def test_values_that_are_not_allowed(fields: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError) as error:
        BM25(**fields)  # type: ignore[arg-type]
    assert str(error.value) == says


@pytest.mark.parametrize("language", ["german", "hindi", "english"])
def test_auto_takes_the_language_that_most_chunks_are_in(language: str, tmp_path: Path) -> None:
    english = ("Where were the old houses?", "There is a house of this kind.", "Where were you?")
    query, answer, other = INFLECTED.get(language, english)
    texts = {"answer": answer, "other": other, "foreign": "Où sont les écoles de la ville?"}
    assert ranking(tmp_path, texts, query, language="auto")[0] == "answer"
    assert (tmp_path / "language").read_text() == language
    assert identity(BM25(language="auto"))["language"] == "auto"


def test_a_code_is_another_name_of_its_language() -> None:
    assert identity(BM25(language="de")) == identity(BM25(language="german"))
    assert identity(BM25(language="en")) == identity(BM25())


# --- what works for Chinese and its neighbours, and what does not -------------------------------------------

CHINESE = {
    "capital": "北京是中华人民共和国的首都，也是全国的政治中心。",
    "river": "长江是中国最长的河流，全长约六千三百公里。",
    "cat": "我的猫很可爱，每天都在窗边睡觉。",
    "apple": "小明买了三个苹果和两本书。",
    "phone": "OpenAI 公司在2022年发布了ChatGPT。",
}


@pytest.mark.parametrize("language", ["chinese", "english"])
@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("中国的首都是哪里？", "capital"),
        ("最长的河流有多长？", "river"),
        ("谁买了苹果？", "apple"),
        ("ChatGPT是什么时候发布的？", "phone"),
        ("２０２２年", "phone"),  # full-width digits
        ("可爱的猫", "cat"),
    ],
)
def test_chinese_questions_find_their_sentence(tmp_path: Path, query: str, best: str, language: str) -> None:
    assert ranking(tmp_path, CHINESE, query, language=language)[0] == best


def test_a_single_chinese_character_finds_only_itself_standing_alone(tmp_path: Path) -> None:
    """Pairs of characters are indexed: 猫 is in the pairs 的猫 and 猫很, and is none of them."""
    assert ranking(tmp_path / "a", CHINESE, "猫", language="chinese") == []
    assert ranking(tmp_path / "b", {**CHINESE, "alone": "猫。"}, "猫", language="chinese") == ["alone"]


def test_pairs_across_two_words_are_found_as_well(tmp_path: Path) -> None:
    """国的 is no word, and the sentences that hold it are found by it: pairs cost precision."""
    assert set(ranking(tmp_path, CHINESE, "国的", language="chinese")) == {"capital"}


def test_traditional_and_simplified_characters_are_not_the_same(tmp_path: Path) -> None:
    assert ranking(tmp_path, CHINESE, "中華人民共和國", language="chinese") == ["capital"]  # 人民, 民共, 共和
    assert ranking(tmp_path / "b", CHINESE, "長江", language="chinese") == []


@pytest.mark.parametrize(
    ("language", "texts", "query"),
    [
        (
            "japanese",
            {"hit": "東京は日本の首都です。", "no": "猫が寝ています。"},
            "日本の首都はどこ",
        ),
        ("japanese", {"hit": "ﾗｰﾒﾝを食べました。", "no": "本を読みました。"}, "ラーメン"),  # half-width kana
        (
            "korean",
            {"hit": "서울은 대한민국의 수도이다.", "no": "고양이가 잔다."},
            "대한민국 수도는?",
        ),
        ("other", {"hit": "กรุงเทพเป็นเมืองหลวงของไทย", "no": "แมวนอนอยู่"}, "เมืองหลวง"),
        ("other", {"hit": "القاهرة عاصمة مصر.", "no": "القط نائم."}, "عاصمة مصر"),
        ("other", {"hit": "दिल्ली भारत की राजधानी है।", "no": "बिल्ली सो रही।"}, "भारत की राजधानी"),
    ],
)
def test_other_scripts(tmp_path: Path, language: str, texts: dict[str, str], query: str) -> None:
    assert ranking(tmp_path, texts, query, language=language)[0] == "hit"
