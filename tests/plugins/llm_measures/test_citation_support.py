"""Support on three levels: weighted precision and recall by hand, asked once per distinct sentence and passage."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragauge.contract import frames
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.plugins.llm_measures.citation_support import CitationSupport, level_by_words, read_level, support_scores
from scripted_chat import ScriptedChat, always, answers, evidence, topics, unframed, used, values

TOPICS = topics(("q1", "Who built the tower?", "Anna"), ("q2", "Where is the bridge?", "Linz"))
PASSAGES = used(("q1", "full", None), ("q1", "partial", None), ("q1", "no", None))


def by_passage(prompt: str, n: int) -> str:
    """The level that the passage names."""
    passage = unframed(prompt).split("Passage, a JSON string:\n")[1].split("\n")[0]
    return json.dumps({"reason": "so", "support": json.loads(passage)})


def measured(chat: ScriptedChat, tools: Tools, answer: str | None, **fields: Any) -> dict[str, Any]:
    rows = answers(("q1", answer))
    found = CitationSupport(**fields).measure_passages(TOPICS, evidence(), PASSAGES, rows, chat.tools(tools))
    frames.check("answer_values", found)
    return {name: value for (_, name), value in values(found).items()}


@pytest.mark.parametrize(
    ("answer", "citations", "precision", "recall"),
    [
        ("So [1]. Or so [2]. Or not [3]. None.", "first", 1.5 / 3, 1.5 / 4),
        ("So [2][1]. None.", "first", 0.5, 0.25),  # the first citation, as it stands
        ("So [2][1]. None.", "all", 0.75, 0.5),
        ("So [9].", "first", 0, 0),
        ("So [1] [9].", "all", 0.5, 1),
        # Sentences that the answer gives, whatever is in them.
        ("One. Two\u2028[1]\n\nthree\u2028", "first", 1, 0.5),
    ],
)
def test_weighted_precision_and_recall(
    tools: Tools, answer: str, citations: str, precision: float, recall: float
) -> None:
    found = measured(ScriptedChat(by_passage), tools, answer, citations=citations)
    assert found == {"support_precision": (precision, "ok"), "support_recall": (recall, "ok")}


def test_what_is_missing(tools: Tools) -> None:
    chat = ScriptedChat(by_passage)
    found = measured(chat, tools, "None.")
    assert found == {"support_precision": (None, "no citations"), "support_recall": (0, "ok")}
    assert {status for _, status in measured(chat, tools, None).values()} == {"no answer"}
    assert not chat.asked
    unreadable = measured(always("maybe"), tools, "So [1].")
    assert {value for value, _ in unreadable.values()} == {None}
    of_another = answers(("q2", "So [1]."))
    rows = CitationSupport(by="words").measure_passages(TOPICS, evidence(), PASSAGES, of_another, tools)
    assert {status for _, status in values(rows).values()} == {"no context"}


def test_a_sentence_and_a_passage_are_asked_about_once(tools: Tools) -> None:
    chat = ScriptedChat(by_passage)
    measured(chat, tools, "So [1]. So [1]. So [2].")
    assert list(chat.asked.values()) == [1, 1]


@pytest.mark.parametrize(
    ("passage", "level"),
    [("Anna built the tower in 1712.", "full"), ("Anna lived in a tower.", "partial"), ("Linz.", "no"), ("", "no")],
)
def test_levels_by_words(passage: str, level: str) -> None:
    assert level_by_words("The tower was built by Anna.", passage) == level


def test_the_forms_of_replies_and_bad_settings() -> None:
    assert read_level('{"reason": "so", "support": "partial"}') == "partial"
    assert read_level('{"support": "some"}') is read_level('{"support": 1}') is read_level("full") is None
    assert support_scores([["full", "no"], [], ["partial"]]) == (1.5 / 3, 1.5 / 3)
    for field in ("by", "citations"):
        with pytest.raises(ConfigError, match=rf"answers\.citation_support\.{field}='x': allowed are"):
            CitationSupport(**{field: "x"})
