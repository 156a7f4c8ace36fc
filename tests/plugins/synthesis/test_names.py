"""Which names two documents have in common."""

from __future__ import annotations

import pytest

from ragauge.plugins.synthesis.names import shared_names


def test_a_name_that_more_than_a_quarter_of_the_documents_hold_is_not_rare() -> None:
    texts = {f"d{i}": f"The mill of place {i} grinds." for i in range(12)}
    for i in range(4):
        texts[f"d{i}"] += " It belongs to Aldor."
    for i in (3, 4, 5):
        texts[f"d{i}"] += " It belongs to Brenn."
    found = shared_names(texts)
    assert {docno: dict(by) for docno, by in found.items()} == {
        "d3": {"d4": "Brenn", "d5": "Brenn"},
        "d4": {"d3": "Brenn", "d5": "Brenn"},
        "d5": {"d3": "Brenn", "d4": "Brenn"},
    }
    # Of four documents two may hold it, though a quarter is one.
    few = {docno: texts[docno] for docno in ("d3", "d4", "d6", "d7")}
    assert shared_names(few)["d3"] == [("d4", "Brenn")]


def test_of_two_shared_names_the_rarer_and_then_the_longer_one_counts() -> None:
    texts = {f"d{i}": f"The mill of place {i} grinds." for i in range(16)}
    for i in (0, 1, 2, 3):
        texts[f"d{i}"] += " It belongs to Aldorstein."
    for i in (0, 3):
        texts[f"d{i}"] += " It belongs to Ilm. It belongs to Brenn."
    found = shared_names(texts)
    assert found["d0"] == [("d3", "Brenn"), ("d1", "Aldorstein"), ("d2", "Aldorstein")]
    assert found["d2"] == [("d0", "Aldorstein"), ("d1", "Aldorstein"), ("d3", "Aldorstein")]


# What each of 24 documents says of its place and builder, whom another document shares, and of further things that
# every third document says. The names are made of two parts, so that all are different.
MADE = {
    "chinese": ("这座桥由{}建造，位于第{}区。", "桥上每天有很多行人经过。|附近有一个古老的市场。|河水在春天涨得很高。",
                "科瓦|霍尔|马尔|温特|格雷|瑟琳", "拉兹特|尼乌斯|蒂诺奇|贝格德"),
    "japanese": ("この橋は{}が建てました。第{}地区にあります。",
                 "毎日多くの人が渡ります。|近くに古い市場があります。|春には水が増えます。",
                 "コヴァ|ホルテ|マルケ|ウィン|グレル|セリン", "ラズト|ニウス|ティノ|ベルグ"),
    "thai": ("สะพานนี้สร้างโดย{} ตั้งอยู่ในเขต {}",
             "มีผู้คนเดินข้ามทุกวัน|มีตลาดเก่าอยู่ใกล้กัน|น้ำในแม่น้ำสูงขึ้นในฤดูใบไม้ผลิ",
             "คอร์วา|โฮลเต|มาร์เค|วินเทอร์|เกรลล์|เซลิน", "ราซท์|นิอุส|ติโนชี|เบิร์กดา"),
    "arabic": ("بنى {} هذا الجسر في الحي {}.", "يعبر كثير من الناس الجسر.|يوجد سوق قديم بالقرب منه.|يرتفع ماء النهر.",
               "كورفاث|هولتن|ماركيتي|وينتر|غريل|سيلين", "رازتو|نيوسا|تينوشي|بيرغدا"),
    "hindi": ("यह पुल {} ने ज़िला {} में बनवाया था।", "हर दिन लोग पुल पार करते हैं।|पास में पुराना बाज़ार है।|नदी का पानी बढ़ता है।",
              "कोरवाथ|होल्टन|मार्केटी|विंटर|ग्रेल|सेलिन", "राज़्तो|नियुसा|तिनोशी|बेर्गदा"),
    "german": ("Die Brücke wurde von {} im Bezirk {} gebaut.",
               "Viele Menschen gehen über die Brücke.|In der Nähe ist ein alter Markt.|Im Frühling steigt der Fluss.",
               "Korvath|Holten|Marchetti|Winter|Grell|Selin", "Razto|Niusa|Tinochi|Bergda"),
}  # fmt: skip
# Common nouns of German, each in two documents that share no builder.
NOUNS = [f"{first}{second}" for first in ("Straßen", "Wasser", "Garten", "Winter")
         for second in ("laternenmast", "leitungsrohr", "werkzeugkiste")]  # fmt: skip


@pytest.mark.parametrize("language", MADE)
def test_documents_share_a_name_where_capitals_say_nothing(language: str) -> None:
    said, further, firsts, lasts = MADE[language]
    builders = [firsts.split("|")[i % 6] + lasts.split("|")[(i % 6 + 2 * (i // 6)) % 4] for i in range(12)]
    texts = {}
    for i in range(24):
        more = further.split("|")[i % 3]
        if language == "german":
            more += (
                f" Dort stand der {NOUNS[i % 12]}." if i < 12 else f" Man fand auch {NOUNS[(i + 5) % 12]} und Staub."
            )
        texts[f"d{i}"] = f"{said.format(builders[i // 2], i)} {more}"
    found = shared_names(texts)
    partners = {docno: by[0] for docno, by in found.items()}
    right = [i for i in range(24) if partners.get(f"d{i}", ("",))[0] == f"d{i ^ 1}"]
    assert len(right) >= 23
    assert all(builders[i // 2] in partners[f"d{i}"][1] for i in right)


# Of languages without spaces the text around a name, how long a piece is, and where unique letters begin.
PIECES = {
    "chinese": ("这座桥由{}建造，位于第{}区。河水在春天涨得很高。", 3, 0x5000),
    "korean": ("이 다리는 {} 지었다. 제{}구역에 있다. 봄에는 물이 많다.", 2, 0xB000),
}


@pytest.mark.parametrize("language", PIECES)
def test_a_run_is_shared_from_the_length_of_a_piece_on_however_often_it_stands_in_a_document(language: str) -> None:
    frame, size, first = PIECES[language]
    for length in (size - 1, size):
        letters = ["".join(chr(first + 37 * i + j) for j in range(3)) for i in range(110)]
        run = letters[-1][:length]
        texts = {f"d{i}": frame.format(letters[2 * i] + run * (i < 2) + letters[2 * i + 1], i) for i in range(24)}
        texts["d0"] += "".join(f" {letters[i]}{run}{letters[i + 1]}." for i in range(48, 72, 2))
        assert shared_names(texts) == ({} if length < size else {"d0": [("d1", run)], "d1": [("d0", run)]})
