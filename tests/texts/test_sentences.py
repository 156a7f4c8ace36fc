import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.texts.sentences import sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n ", []),
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ('He said "No." Then he left.', ['He said "No."', "Then he left."]),
        ("It ended (in 1990.) A new one began.", ["It ended (in 1990.)", "A new one began."]),
        ("Dr. Smith saw St. Louis. It rained.", ["Dr. Smith saw St. Louis.", "It rained."]),
        ("J. S. Bach was born in 1685. He died.", ["J. S. Bach was born in 1685.", "He died."]),
        ("The U.S. Army came. They left.", ["The U.S. Army came.", "They left."]),
        ("He moved to the U.S. He stayed.", ["He moved to the U.S.", "He stayed."]),
        ("Fruit, e.g. Apples, i.e. Malus.", ["Fruit, e.g. Apples, i.e. Malus."]),
        ("Founded by Apple Inc. in 1976.", ["Founded by Apple Inc. in 1976."]),
        ("See No. 5. He said no. Then he left.", ["See No. 5.", "He said no.", "Then he left."]),
        ("It is 3.5 m long. 1990 was wet.", ["It is 3.5 m long.", "1990 was wet."]),
        ("1. First item. 2. Second", ["1. First item.", "2. Second"]),
        ("100. An item. 1990. It was wet.", ["100. An item.", "1990.", "It was wet."]),
        ("Yahoo! was a company. Really… Yes", ["Yahoo! was a company.", "Really…", "Yes"]),
        ("A heading\n\nA paragraph", ["A heading", "A paragraph"]),
        ("今天。明天！好", ["今天。", "明天！", "好"]),
        ("東京は首都です。そうですか？はい｡", ["東京は首都です。", "そうですか？", "はい｡"]),
        ("राम आया। सीता गई।वह कौन है? श्लोक॥", ["राम आया।", "सीता गई।", "वह कौन है?", "श्लोक॥"]),
        ("من بنى المنارة؟ بناها أحمد. ثم سافر.", ["من بنى المنارة؟", "بناها أحمد.", "ثم سافر."]),
        ("وہ آیا۔ وہ گئی۔", ["وہ آیا۔", "وہ گئی۔"]),
        (
            "Am 7. Februar kam er. Er blieb bis zum 19. Jahrhundert.",
            ["Am 7. Februar kam er.", "Er blieb bis zum 19. Jahrhundert."],
        ),
        (
            "Sie wurde mit der Mannschaft nur 12. Der Trainer ging.",
            ["Sie wurde mit der Mannschaft nur 12.", "Der Trainer ging."],
        ),
        ("They were placed only 12. Berlin was the first.", ["They were placed only 12.", "Berlin was the first."]),
        (
            "Majakan rakensi Lena Holt. Hän kuoli 7. helmikuuta.",
            ["Majakan rakensi Lena Holt.", "Hän kuoli 7. helmikuuta."],
        ),
    ],
)
def test_sentences_worked_out_by_hand(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


# "|" where one sentence ends and the next begins, beside the white space that is there.
@pytest.mark.parametrize(
    "text",
    [
        "他说：“你好。”|然后走了。|GDP增长6.1%。",
        "他说了“好。”。|然后走了。",
        "是吗?|不是。|好的!|走吧",
        "「ありがとう。」と彼は言った。|（雨だった。）|次の日。",
        "すごい!!|価格は1.5万円です。",
        "เขาไปหา ดร. สมชาย ที่ จ. เชียงใหม่",
        "قال د. محمد إنه مريض. |كتب أ. د. خالد كتابا. |كان عام 1990. |ثم",
        "हाँ! |डॉ. शर्मा आए। |श्री. वर्मा ने कहा।",
        "Am 3. Oktober ging Dr. Müller z. B. nach Hause. |Das sind u. a. Äpfel, d. h. Obst.",
        "Prof. Dr. Schmidt lebt in der Hauptstr. 5 bzw. Nr. 6 dort. |Der 2. Weltkrieg endete 1945.",
        "„Komm her!“ sagte er. |„Nein.“ |Sie ging. |»Ja.« |Er kam. |»Gut«, sagte sie.",
        "Se perustettiin 12. kesäkuuta 1550. |Esim. Turku on vanhempi, ks. kuva 3. |Asukkaita on n. 650 000.",
        "Prof. Virtanen tuli klo 12. |Hän lähti.",
        "Il dit : « Oui. » |Elle partit. |Vraiment ? |Oui !",
        "He chose b. |It is 5 mm. |The next one, “Yes.” |She turned 12. |May came.",
    ],
)
def test_sentences_of_other_languages(text: str) -> None:
    assert sentences(text.replace("|", "")) == [one.strip() for one in text.split("|")]


def test_white_space_before_an_empty_line_is_no_part_of_a_sentence() -> None:
    assert sentences("One \t\n\nTwo") == ["One", "Two"]


@given(st.text() | st.text(alphabet="aA .!?\n。\"')1", max_size=60))
def test_spans_are_ordered_and_cover_all_but_white_space(text: str) -> None:
    spans = sentence_spans(text)
    left_out, at = "", 0
    for start, end in spans:
        assert at <= start < end <= len(text)
        left_out += text[at:start]
        assert text[start:end] == text[start:end].strip()
        at = end
    assert re.fullmatch(r"\s*", left_out + text[at:])


@pytest.mark.parametrize("text", ["." * 200_000, "\n" * 200_000, ". " * 100_000, "a." * 100_000])
def test_time_is_linear_in_the_text(text: str) -> None:
    sentence_spans(text)  # minutes, were it quadratic


def test_a_thai_sentence_ends_at_a_space_once_it_is_long_and_nothing_is_linked_to_it() -> None:
    long = "ประภาคารแห่งนี้สร้างขึ้นในสมัยรัชกาลที่ห้าโดยวิศวกรชาวต่างชาติคนหนึ่ง"
    assert sentences(f"{long} เรือทุกลำมองเห็นแสงจากที่นี่") == [long, "เรือทุกลำมองเห็นแสงจากที่นี่"]
    assert sentences(f"{long} และเรือทุกลำมองเห็น") == [f"{long} และเรือทุกลำมองเห็น"]
    assert sentences("นาย สมชาย มา") == ["นาย สมชาย มา"]
