"""The language of a text: sentences of every language, what is too short, and texts of two languages."""

from __future__ import annotations

import pytest

from ragauge.contract.errors import ConfigError
from ragauge.texts.languages import CODES, language_of, language_of_all, named_language

# A statement and two questions of each; the names in them are of no language.
SENTENCES = {
    "en": ("The lighthouse was built in 1807 by Lena Holt.", "Who built it?", "When was Lena Holt born?"),
    "de": ("Der Leuchtturm wurde 1807 von Lena Holt gebaut.", "Wer baute ihn?", "Wann wurde Lena Holt geboren?"),
    "es": ("El faro fue construido en 1807 por Lena Holt.", "¿Quién lo construyó?", "¿Cuándo nació Lena Holt?"),
    "fr": ("Le phare fut bâti en 1807 par Lena Holt.", "Qui l'a bâti ?", "Quand est née Lena Holt ?"),
    "it": ("Il faro fu costruito nel 1807 da Lena Holt.", "Chi lo ha costruito?", "Quando è nata Lena Holt?"),
    "pt": ("O farol foi construído em 1807 por Lena Holt.", "Quem o construiu?", "Em que ano nasceu a Lena Holt?"),
    "nl": ("De vuurtoren werd in 1807 gebouwd door Lena Holt.", "Wie bouwde het?", "Wanneer werd Lena geboren?"),
    "sv": ("Fyren byggdes 1807 av Lena Holt och står än.", "Vem byggde den åt er?", "När föddes Lena Holt?"),
    "tr": ("Deniz feneri 1807'de Lena Holt tarafından yapıldı.", "Feneri kim yaptı?", "Lena Holt ne zaman doğdu?"),
    "vi": ("Ngọn hải đăng được Lena Holt xây năm 1807.", "Ai đã xây nó?", "Lena Holt sinh năm nào?"),
    "fi": ("Majakan rakensi vuonna 1807 Lena Holt.", "Kuka sen rakensi?", "Milloin Lena Holt syntyi?"),
    "pl": ("Latarnia została zbudowana w 1807 przez Lenę.", "Kto ją zbudował?", "Kiedy urodziła się Lena Holt?"),
    "ru": ("Маяк построила в 1807 году Лена Хольт.", "Кто его построил?", "Когда родилась Lena Holt?"),
    "uk": ("Маяк збудувала Лєна Гольт.", "Хто його збудував і коли?", "Де її дім?"),
    "el": ("Τον φάρο έχτισε το 1807 η Λένα Χολτ.", "Ποιος τον έχτισε;", "Πότε γεννήθηκε η Lena Holt;"),
    "ar": ("بنت لينا هولت المنارة عام 1807.", "من بنى المنارة؟", "متى ولدت Lena Holt؟"),
    "fa": ("این فانوس را لنا هولت ساخته است.", "چه کسی آن را ساخت؟", "لنا هولت کی به دنیا آمد؟"),
    "he": ("המגדלור נבנה בשנת 1807.", "מי בנה אותו?", "מתי נולדה Lena Holt?"),
    "hi": ("प्रकाशस्तंभ 1807 में लेना होल्ट ने बनवाया था।", "इसे किसने बनवाया?", "Lena Holt का जन्म कब हुआ?"),
    "th": ("ประภาคารนี้สร้างโดยลีนา โฮลต์ในปี 1807", "ใครเป็นคนสร้าง", "Lena Holt เกิดเมื่อไร"),
    "ja": ("この灯台は1807年にレナ・ホルトが建てました。", "誰が建てましたか？", "Lena Holtはいつ生まれましたか？"),
    "ko": ("이 등대는 1807년에 레나 홀트가 지었다.", "누가 지었나?", "Lena Holt는 언제 태어났는가?"),
    "zh": ("这座灯塔由莱娜·霍尔特于1807年建造。", "谁建造了它？", "Lena Holt是哪一年出生的？"),
}


@pytest.mark.parametrize("code", SENTENCES)
def test_statements_and_questions_have_their_language(code: str) -> None:
    assert [language_of(text) for text in SENTENCES[code]] == [CODES[code]] * 3


@pytest.mark.parametrize("text", ["", "1807", "Lena Holt", "?! …", "Vestrand 12"])
def test_a_name_or_a_year_has_no_language(text: str) -> None:
    assert language_of(text) is None


HOUSES = "the house of the people " * 200
# Where a heuristic turns: by hand from the weights of letters (Han 3, kana 2, others 1) and of words.
TURNS = [
    ("灯" * 21 + "のです" + "の", "japanese"),  # 8 times the kana's 8 is not below the 63 of Han
    ("灯" * 22 + "のです" + "の", "chinese"),
    ("слово " * 9 + "лі", "ukrainian"),  # a tenth of the words has a letter that is only Ukrainian
    ("слово " * 10 + "лі", "russian"),
    ("Lena Holt Αθήνα", "greek"),  # names do not count
    ("Lena holt Αθ", None),
    ("слово " * 340 + HOUSES, "russian"),  # 2,000 characters are looked at
    ("слово " * 30 + HOUSES, "english"),
    ("und " + "xqv " * 10, "german"),  # 1 is over 0.09 of 11 words, and below that of 12
    ("und " + "xqv " * 11, None),
    ("Heilung", None),  # an ending is 0.3, and 0.5 is the least
    ("Heilung Ordnung", "german"),
    ("de de", None),  # ten languages share it
    ("la de los", "spanish"),
    ("il les", "french"),  # it has half of each word, and two others have the other halves
]


@pytest.mark.parametrize(("text", "language"), TURNS)
def test_where_a_weight_turns(text: str, language: str | None) -> None:
    assert language_of(text) == language


def test_the_longer_part_decides_and_a_foreign_title_does_not() -> None:
    assert (
        language_of("Wer schrieb das Buch „The Old Man and the Sea“ und wann erschien es in Deutschland?") == "german"
    )
    assert language_of("Great Wall 是它的英文名，今天每年有很多人参观。") == "chinese"
    assert language_of("The word 長城 is the Chinese name of the Great Wall in the north of the country.") == "english"


def test_most_texts_decide_for_a_corpus() -> None:
    german, english = SENTENCES["de"], SENTENCES["en"]
    assert language_of_all([*german, english[0], "1807", "Lena Holt"]) == "german"
    assert language_of_all(["1807", ""]) is None
    assert language_of_all([english[0], german[0], "1807"]) == "english"  # of a tie the first
    assert language_of_all([german[1]] * 501 + [english[1]] * 1499) == "german"  # of a thousand texts
    assert language_of_all([german[1]] * 500 + [english[1]] * 501) == "german"


def test_a_language_has_a_name_and_a_code() -> None:
    assert named_language("language", "de", CODES.values()) == named_language("language", "german", CODES.values())
    with pytest.raises(ConfigError, match=r"^language='klingon': allowed are arabic, .* or a code such as de$"):
        named_language("language", "klingon", CODES.values())
