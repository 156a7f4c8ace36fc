"""Questions and documents in 20 languages from sentences with names and years drawn anew; a writer that strays.

{n} is a person, {t} a town, {y} a year, in Latin letters whatever the language. The sentences were written for this
simulation; no rule of ragauge.texts.languages was set by them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ragauge.plugins.synthesis import checks
from ragauge.plugins.synthesis.drafts import LANGUAGE, Draft, Written
from ragauge.plugins.synthesis.units import Unit
from ragauge.texts.languages import language_of

XQUAD = (
    "arabic", "german", "greek", "english", "spanish", "hindi", "russian", "thai", "turkish", "vietnamese", "chinese",
)  # fmt: skip
# Two sentences of a document, and five questions.
TEXTS: dict[str, tuple[str, ...]] = {
    "english": (
        "The mill of {t} was opened in {y}, and {n} was its first owner.",
        "It burned down twice, but the people of the valley rebuilt it each time.",
        "Who was the first owner of the mill of {t}?", "When did the mill of {t} open?",
        "How often did the mill burn down?", "What did {n} own?", "Which town had a mill in {y}?",
    ),
    "german": (
        "Die Mühle von {t} wurde {y} eröffnet, und {n} war ihre erste Besitzerin.",
        "Sie brannte zweimal ab, doch die Leute im Tal bauten sie jedes Mal wieder auf.",
        "Wer war die erste Besitzerin der Mühle von {t}?", "Wann wurde die Mühle von {t} eröffnet?",
        "Wie oft ist die Mühle abgebrannt?", "Was hat {n} besessen?", "Welche Stadt hatte {y} eine Mühle?",
    ),
    "french": (
        "Le moulin de {t} a ouvert en {y}, et {n} en fut la première propriétaire.",
        "Il a brûlé deux fois, mais les gens de la vallée l'ont reconstruit à chaque fois.",
        "Qui fut la première propriétaire du moulin de {t} ?", "Quand le moulin de {t} a-t-il ouvert ?",
        "Combien de fois le moulin a-t-il brûlé ?", "Que possédait {n} ?", "Quelle ville avait un moulin en {y} ?",
    ),
    "italian": (
        "Il mulino di {t} fu aperto nel {y}, e {n} ne fu la prima proprietaria.",
        "Bruciò due volte, ma la gente della valle lo ricostruì ogni volta.",
        "Chi fu la prima proprietaria del mulino di {t}?", "Quando fu aperto il mulino di {t}?",
        "Quante volte è bruciato il mulino?", "Che cosa possedeva {n}?", "Quale città aveva un mulino nel {y}?",
    ),
    "spanish": (
        "El molino de {t} se abrió en {y}, y {n} fue su primera dueña.",
        "Se quemó dos veces, pero la gente del valle lo reconstruyó cada vez.",
        "¿Quién fue la primera dueña del molino de {t}?", "¿Cuándo se abrió el molino de {t}?",
        "¿Cuántas veces se quemó el molino?", "¿Qué poseía {n}?", "¿Qué ciudad tenía un molino en {y}?",
    ),
    "portuguese": (
        "O moinho de {t} foi aberto em {y}, e {n} foi a sua primeira dona.",
        "Ardeu duas vezes, mas as pessoas do vale reconstruíram-no de cada vez.",
        "Quem foi a primeira dona do moinho de {t}?", "Quando foi aberto o moinho de {t}?",
        "Quantas vezes ardeu o moinho?", "O que possuía {n}?", "Que cidade tinha um moinho em {y}?",
    ),
    "dutch": (
        "De molen van {t} werd in {y} geopend, en {n} was de eerste eigenares.",
        "Hij brandde twee keer af, maar de mensen in het dal bouwden hem steeds weer op.",
        "Wie was de eerste eigenares van de molen van {t}?", "Wanneer werd de molen van {t} geopend?",
        "Hoe vaak is de molen afgebrand?", "Wat bezat {n}?", "Welke stad had in {y} een molen?",
    ),
    "swedish": (
        "Kvarnen i {t} öppnades {y}, och {n} var dess första ägare.",
        "Den brann ner två gånger, men folket i dalen byggde upp den varje gång.",
        "Vem var den första ägaren av kvarnen i {t}?", "När öppnades kvarnen i {t}?",
        "Hur många gånger brann kvarnen ner?", "Vad ägde {n}?", "Vilken stad hade en kvarn {y}?",
    ),
    "finnish": (
        "Kaupungin {t} mylly avattiin vuonna {y}, ja {n} oli sen ensimmäinen omistaja.",
        "Se paloi kahdesti, mutta laakson asukkaat rakensivat sen joka kerta uudelleen.",
        "Kuka oli kaupungin {t} myllyn ensimmäinen omistaja?", "Milloin kaupungin {t} mylly avattiin?",
        "Kuinka monta kertaa mylly paloi?", "Minkä {n} omisti?", "Missä kaupungissa oli mylly vuonna {y}?",
    ),
    "polish": (
        "Młyn w {t} otwarto w {y} roku, a {n} była jego pierwszą właścicielką.",
        "Spłonął dwa razy, ale mieszkańcy doliny odbudowali go za każdym razem.",
        "Kto był pierwszym właścicielem młyna w {t}?", "Kiedy otwarto młyn w {t}?",
        "Ile razy spłonął młyn?", "Co posiadała {n}?", "Które miasto miało młyn w {y} roku?",
    ),
    "turkish": (
        "{t} değirmeni {y} yılında açıldı ve ilk sahibi {n} oldu.",
        "İki kez yandı, ama vadinin insanları onu her seferinde yeniden yaptı.",
        "{t} değirmeninin ilk sahibi kimdi?", "{t} değirmeni ne zaman açıldı?",
        "Değirmen kaç kez yandı?", "{n} neye sahipti?", "{y} yılında hangi şehrin değirmeni vardı?",
    ),
    "vietnamese": (
        "Cối xay của {t} mở cửa năm {y}, và {n} là chủ đầu tiên.",
        "Nó bị cháy hai lần, nhưng người dân trong thung lũng đều xây lại.",
        "Ai là chủ đầu tiên của cối xay ở {t}?", "Cối xay của {t} mở cửa khi nào?",
        "Cối xay bị cháy mấy lần?", "{n} sở hữu cái gì?", "Thị trấn nào có cối xay vào năm {y}?",
    ),
    "greek": (
        "Ο μύλος του {t} άνοιξε το {y} και η {n} ήταν η πρώτη ιδιοκτήτρια.",
        "Κάηκε δύο φορές, αλλά οι άνθρωποι της κοιλάδας τον ξανάχτισαν.",
        "Ποια ήταν η πρώτη ιδιοκτήτρια του μύλου του {t};", "Πότε άνοιξε ο μύλος του {t};",
        "Πόσες φορές κάηκε ο μύλος;", "Τι είχε στην κατοχή της η {n};", "Ποια πόλη είχε μύλο το {y};",
    ),
    "russian": (
        "Мельница в городе {t} открылась в {y} году, и {n} стала её первой владелицей.",
        "Она сгорела дважды, но жители долины каждый раз строили её заново.",
        "Кто первым владел мельницей в городе {t}?", "Когда открылась мельница в городе {t}?",
        "Сколько раз сгорала мельница?", "Чем владела {n}?", "В каком городе была мельница в {y} году?",
    ),
    "arabic": (
        "افتتحت مطحنة {t} عام {y} وكانت {n} أول مالكة لها.",
        "احترقت مرتين، لكن أهل الوادي أعادوا بناءها في كل مرة.",
        "من كانت أول مالكة لمطحنة {t}؟", "متى افتتحت مطحنة {t}؟",
        "كم مرة احترقت المطحنة؟", "ماذا كانت تملك {n}؟", "أي مدينة كانت فيها مطحنة عام {y}؟",
    ),
    "hindi": (
        "{t} की चक्की {y} में खुली और {n} उसकी पहली मालकिन थीं।",
        "वह दो बार जली, लेकिन घाटी के लोगों ने हर बार उसे फिर बनाया।",
        "{t} की चक्की की पहली मालकिन कौन थीं?", "{t} की चक्की कब खुली?",
        "चक्की कितनी बार जली?", "{n} के पास क्या था?", "{y} में किस नगर में चक्की थी?",
    ),
    "thai": (
        "โรงสีของเมือง {t} เปิดในปี {y} และ {n} เป็นเจ้าของคนแรก",
        "โรงสีถูกไฟไหม้สองครั้ง แต่ชาวหุบเขาสร้างขึ้นใหม่ทุกครั้ง",
        "ใครเป็นเจ้าของคนแรกของโรงสีเมือง {t}", "โรงสีของเมือง {t} เปิดเมื่อใด",
        "โรงสีถูกไฟไหม้กี่ครั้ง", "{n} เป็นเจ้าของอะไร", "เมืองใดมีโรงสีในปี {y}",
    ),
    "chinese": (
        "{t}的磨坊于{y}年开业，{n}是第一任主人。", "它两次被烧毁，但山谷里的人们每次都重建了它。",
        "{t}的磨坊的第一任主人是谁？", "{t}的磨坊是什么时候开业的？",
        "磨坊被烧毁了几次？", "{n}拥有什么？", "哪个城市在{y}年有一座磨坊？",
    ),
    "japanese": (
        "{t}の水車小屋は{y}年に開き、{n}が最初の持ち主でした。",
        "二度燃えましたが、谷の人々はそのたびに建て直しました。",
        "{t}の水車小屋の最初の持ち主は誰でしたか？", "{t}の水車小屋はいつ開きましたか？",
        "水車小屋は何度燃えましたか？", "{n}は何を持っていましたか？", "{y}年に水車小屋があった町はどこですか？",
    ),
    "korean": (
        "{t}의 방앗간은 {y}년에 문을 열었고 {n}이 첫 주인이었다.", "두 번 불탔지만 골짜기 사람들은 매번 다시 지었다.",
        "{t} 방앗간의 첫 주인은 누구였는가?", "{t}의 방앗간은 언제 문을 열었는가?",
        "방앗간은 몇 번 불탔는가?", "{n}은 무엇을 가지고 있었는가?", "{y}년에 방앗간이 있던 도시는 어디인가?",
    ),
}  # fmt: skip
_SYLLABLES = ("bra", "ven", "tol", "mir", "dax", "lu", "kes", "pon", "rid", "gal", "shu", "nef")
STRAYS = 0.2


def _drawn(rng: np.random.Generator, languages: tuple[str, ...], n: int) -> Iterator[tuple[str, str, str, bool]]:
    """n documents of each language, each with its language, a question, and whether that is in another language."""

    def name() -> str:
        return "".join(rng.choice(_SYLLABLES, 2)).capitalize()

    for language in languages:
        others = [one for one in languages if one != language]
        for stray in rng.random(n) < STRAYS:
            drawn = {"n": f"{name()} {name()}", "t": name(), "y": int(rng.integers(1200, 2020))}
            texts = TEXTS[str(rng.choice(others)) if stray else language]
            document = " ".join(TEXTS[language][:2]).format(**drawn)
            yield language, document, texts[int(rng.integers(2, len(texts)))].format(**drawn), bool(stray)


def rejected(languages: tuple[str, ...], n: int, seed: int) -> dict[str, tuple[float, float]]:
    """By language the shares of questions in another one, and of those in its own, that `language=auto` rejects."""
    found: dict[str, list[tuple[bool, bool]]] = {one: [] for one in languages}
    for language, document, question, stray in _drawn(np.random.default_rng(seed), languages, n):
        draft = Draft(0, Unit("one_hop", ("d",)), (document,), written=Written(question, "1807"))
        checks.language([draft], "auto")
        found[language].append((stray, draft.rejected_by == LANGUAGE))
    return {
        one: tuple(float(np.mean([struck for strays, struck in drafts if strays == of])) for of in (True, False))  # type: ignore[misc]
        for one, drafts in found.items()
    }


def recognised(n: int, seed: int) -> dict[str, tuple[float, float]]:
    """By language the shares of its questions whose language is found, and taken for another."""
    found: dict[str, list[tuple[bool, bool]]] = {one: [] for one in TEXTS}
    for language, _, question, stray in _drawn(np.random.default_rng(seed), tuple(TEXTS), n):
        if not stray:
            said = language_of(question)
            found[language].append((said == language, said not in (language, None)))
    return {
        one: (float(np.mean(a)), float(np.mean(b)))
        for one, (a, b) in ((k, zip(*v, strict=True)) for k, v in found.items())
    }
