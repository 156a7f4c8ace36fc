"""Samples of several turns: a topic a turn, with what came before it, its contexts and its answer."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.contract.topics import attributes_of
from ragauge.datasets import SamplesDataset, recordings

# As RAGAS's MultiTurnSample.model_dump gives it.
RAGAS = {
    "user_input": [
        {"content": "Who built the mill at Orrin?", "metadata": None, "type": "human"},
        {"content": "", "metadata": None, "type": "ai", "tool_calls": [{"name": "find", "args": {"q": "mill"}}]},
        {"content": "Tessa Holm built the mill.", "metadata": None, "type": "tool"},
        {"content": "Tessa Holm.", "metadata": None, "type": "ai", "tool_calls": None},
        {"content": "And when?", "metadata": None, "type": "human"},
        {"content": "In 1804.", "metadata": None, "type": "ai", "tool_calls": None},
    ],
    "reference": "1804",
}
# As DeepEval's ConversationalTestCase holds its turns.
DEEPEVAL = {
    "scenario": "Asks about a mill",
    "expected_outcome": "1804",
    "turns": [
        {"role": "user", "content": "Who built the mill at Orrin?"},
        {"role": "assistant", "content": "Tessa Holm.", "retrieval_context": ["Tessa Holm built the mill."]},
        {"role": "user", "content": "And when?"},
        {"role": "assistant", "content": "In 1804.", "retrieval_context": None},
    ],
}


def lines(folder: Path, *rows: Mapping[str, Any]) -> Path:
    path = folder / "talks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def check(path: Path) -> pd.DataFrame:
    """The topics of the conversation above, whichever way it is written."""
    topics = SamplesDataset(path=path).load().topics
    assert topics["qid"].tolist() == ["1-1", "1-2"]
    assert topics["query"].tolist() == ["Who built the mill at Orrin?", "And when?"]
    assert [list(one) for one in topics["history"]] == [[], ["Who built the mill at Orrin?", "Tessa Holm."]]
    assert topics["answer"].isna().tolist() == [True, False]
    assert topics["answer"][1] == "1804"
    assert topics["conversation"].tolist() == ["1", "1"]
    assert topics["turn"].tolist() == [1, 2]
    rows = recordings.read_rows(path, None, "llm.system")
    assert [row.text("answer") for row in rows] == ["Tessa Holm.", "In 1804."]
    assert [row.texts("contexts") for row in rows] == [["Tessa Holm built the mill."], None]
    return topics


@pytest.mark.parametrize("row", [RAGAS, DEEPEVAL], ids=["ragas", "deepeval"])
def test_a_turn_is_a_topic_with_its_history(tmp_path: Path, row: Mapping[str, Any]) -> None:
    topics = check(lines(tmp_path, row))
    assert attributes_of(topics) == [*(["scenario"] if row is DEEPEVAL else []), "conversation", "turn"]


def test_messages_that_csv_prints_are_read(tmp_path: Path) -> None:
    for row in (RAGAS, {**DEEPEVAL, "turns": json.dumps(DEEPEVAL["turns"])}):
        path = tmp_path / "talks.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(row))
            writer.writeheader()
            writer.writerow(row)
        check(path)


def test_what_a_message_says_of_its_turn_is_the_turns(tmp_path: Path) -> None:
    talk = [
        {"role": "assistant", "content": "Hello."},
        {
            "role": "user",
            "content": "Which river?",
            "reference": "The Arl",
            "reference_contexts": ["The Arl runs here."],
        },
        {"role": "assistant", "content": "The Arl.", "label": 5},
    ]
    row = {"id": "c7", "messages": talk, "customer": "new"}
    data = SamplesDataset(path=lines(tmp_path, row, {"question": "Alone?"})).load()
    assert data.topics["qid"].tolist() == ["c7-1", "2"]
    assert [list(one) for one in data.topics["history"]] == [["", "Hello."], []]
    assert data.topics["answer"][0] == "The Arl"
    assert data.topics["customer"][0] == "new"
    assert data.evidence["text"].tolist() == ["The Arl runs here."]


def test_what_tools_say_is_the_contexts_of_the_turn_in_which_they_say_it(tmp_path: Path) -> None:
    said = [("user", "Who?"), ("tool", "a"), ("assistant", ""), ("assistant", "Anna"), ("user", "When?"),
            ("function", "b"), ("tool", "c"), ("agent", "In 1804")]  # fmt: skip
    talk = [{"role": role, "content": text} for role, text in said]
    talk[3] |= {"label": 5, "cost": None, "mood": "good"}
    row = {"qid": "t", "messages": talk, "reference": "1804", "expected_outcome": "other", "lang": "en"}
    first, second = recordings.read_rows(lines(tmp_path, row), None, "s")
    assert (first.texts("contexts"), second.texts("contexts")) == (["a"], ["b", "c"])
    assert (first.text("answer"), second.text("answer")) == ("Anna", "In 1804")
    assert (first.values.get("label"), second.values.get("label")) == (5, None)
    assert (first.references(), second.references()) == ((), ("other",))
    assert first.extra == second.extra | {"turn": 1} == {"conversation": "t", "turn": 1, "lang": "en"}


def test_systems_with_answers_of_their_own_have_the_questions_in_common(tmp_path: Path) -> None:
    other = json.loads(json.dumps(DEEPEVAL).replace("Tessa Holm.", "Nobody knows."))
    path = lines(tmp_path, {**DEEPEVAL, "system": "a"}, {**other, "system": "b"})
    topics = SamplesDataset(path=path).load().topics
    assert list(topics["history"][1]) == ["Who built the mill at Orrin?", ""]
    assert recordings.read_rows(path, "b", "llm.system")[0].text("answer") == "Nobody knows."


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"scenario": "s", "turns": []}, "line 1: a conversational golden of DeepEval without turns"),
        ({"turns": [{"role": "critic", "content": "x"}]}, "message 1 has the role 'critic': allowed are user, human, "),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "the text of message 1, of user, is not a string"),
        ({"messages": [{"role": "user", "content": "x"}, 3]}, "message 2 is no object with a role and a text: 3"),
        ({"user_input": [{"content": "x", "type": "ai"}]}, "'user_input' is a conversation without a message of"),
    ],
)  # fmt: skip
def test_a_sample_that_is_refused_says_what_it_is(tmp_path: Path, row: Mapping[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=told):
        SamplesDataset(path=lines(tmp_path, row)).load()
