"""Questions in another language than their documents: a writer by script that strays in a fifth of its drafts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.llms.json_replies import Found
from ragauge.plugins.synthesis.documents import drawn
from ragauge.plugins.synthesis.rounds import Synthesis, outcome
from ragauge.plugins.synthesis.settings import Filters, Settings

# Of each language of XQuAD what a document says, and what is asked of it; {} is a name in Latin letters.
MADE = {
    "english": ("The bridge of {} was built by Ines Korvath and has four arches.", "Who built the bridge of {}?"),
    "arabic": ("بنت إينيس كورفاث جسر {} ولهذا الجسر أربعة أقواس.", "من بنى جسر {}؟"),
    "german": ("Die Brücke von {} wurde von Ines Korvath gebaut und hat vier Bögen.", "Wer baute die Brücke von {}?"),
    "greek": ("Τη γέφυρα του {} έχτισε η Ίνες Κόρβαθ και έχει τέσσερα τόξα.", "Ποιος έχτισε τη γέφυρα του {};"),
    "spanish": ("El puente de {} fue construido por Ines Korvath y tiene arcos.", "¿Quién construyó el puente de {}?"),
    "hindi": ("{} का पुल इनेस कोरवाथ ने बनवाया था और इसमें चार मेहराब हैं।", "{} का पुल किसने बनवाया?"),
    "russian": ("Мост в городе {} построила Инес Корват, у него четыре арки.", "Кто построил мост в городе {}?"),
    "thai": ("สะพานของเมือง {} สร้างโดยอิเนส คอร์วาท และมีสี่ซุ้มโค้ง", "ใครเป็นผู้สร้างสะพานของเมือง {}"),
    "turkish": ("{} köprüsü Ines Korvath tarafından yapıldı ve dört kemeri var.", "{} köprüsünü kim yaptı?"),
    "vietnamese": ("Cây cầu của {} do Ines Korvath xây và có bốn nhịp.", "Ai đã xây cây cầu của {}?"),
    "chinese": ("{}的桥由伊内斯·科瓦特建造，共有四个桥拱。", "{}的桥是谁建造的？"),
}  # fmt: skip
TOWNS = [
    f"{first}{last}" for first in ("Al", "Bel", "Cre", "Dun", "El") for last in ("dor", "mar", "sta", "mor", "brin")
]


class Asking:
    """Writes in the language of the document, and in every fifth draft in the next language of MADE."""

    def __init__(self, language: str) -> None:
        self.language, self.strays = language, set[str]()

    def can(self, purpose: str) -> bool:
        return purpose == "questions"

    def __call__(
        self, purpose: str, readers: Mapping[str, Callable[[str], Any]], guesses: Mapping[str, Any]
    ) -> dict[str, Found[Any]]:
        return {prompt: Found(read(self._reply(prompt)), "ok") for prompt, read in readers.items()}

    def _reply(self, prompt: str) -> str:
        [town] = set(re.findall("|".join(TOWNS), prompt))
        statement, own = MADE[self.language]
        others = [question for language, (_, question) in MADE.items() if language != self.language]
        number = TOWNS.index(town)
        if number % 5 == 0:
            self.strays.add(town)
        question = others[number // 5 % len(others)] if town in self.strays else own
        said = {"question": question.format(town), "answer": "Ines Korvath", "evidence": [statement.format(town)]}
        return json.dumps(said, ensure_ascii=False)


def written(language: str, setting: str, embedder: Any) -> tuple[set[str], set[str], dict[str, float]]:
    """The towns whose questions strayed, those that were rejected by their language, and the metrics."""
    rows = [(town, "", MADE[language][0].format(town)) for town in TOWNS]
    corpus = pd.DataFrame(rows, columns=["docno", "title", "text"]).astype("str")
    n = len(TOWNS)
    filters = Filters(follows=False, duplicate_cosine=None)
    settings = Settings(n, shares={"one_hop": 1}, max_drafts=n, language=setting, filters=filters)
    ask: Any = Asking(language)
    result = Synthesis(drawn(corpus, "none", 0), settings, ask, embedder).run()
    assert {draft.rejected_by for draft in result.rejected} <= {"language"}
    return ask.strays, {draft.unit.docnos[0] for draft in result.rejected}, outcome(result)


@pytest.mark.parametrize("language", MADE)
def test_drafts_in_another_language_are_rejected_and_counted(language: str, hash_embedder: Any) -> None:
    for setting in ("auto", language):
        strays, rejected, metrics = written(language, setting, hash_embedder)
        assert len(strays) == 5
        # English is what is not set, and then questions are taken in any language.
        assert rejected == (set() if setting == "english" else strays)
        assert metrics["synthesis_rejected_language"] == len(rejected)


def test_a_language_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match="language='klingon'"):
        Settings(language="klingon")
