"""RGB's accuracy: every slot of the answer, in one of its spellings."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from ragauge.contract import frames
from ragauge.contract.errors import DataError
from ragauge.plugins.robustness.slots import Slots

DATE = '[["January 2 2022", "Jan 2, 2022"], ["Graz"]]'


def value(answer: str | None, slots: str | None = DATE, reference: str | None = "x") -> float:
    topics = pd.DataFrame({"qid": ["q"], "query": ["?"], "answer": [reference], "answer_slots": [slots]})
    answers = pd.DataFrame({"qid": ["q"], "n_tokens": [8], "answer": pd.array([answer], "str")})
    none: Any = None
    found = frames.check("answer_values", Slots().measure(topics, none, none, answers, none))
    return float(found["value"].iloc[0])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("In GRAZ, on Jan 2, 2022.", 1),
        ("On January 2 2022, in Linz", 0),
        ("In Graz", 0),
        ("In Graz on January 2022 2", 0),  # letter for letter
        ("Graz, Jan 2, 2022, but insufficient information", 0),
        ("", 0),
    ],
)
def test_every_slot_in_one_of_its_spellings(answer: str, expected: float) -> None:
    assert value(answer) == expected


def test_white_space_does_not_count_in_chinese() -> None:
    assert value("2022年1月 2日，在 格拉茨", '[["2022年1月2日"], ["格拉 茨"]]') == 1
    assert value("信 息不足，格拉茨", '[["格拉茨"]]') == 0


def test_a_topic_without_slots_has_its_references_as_spellings() -> None:
    assert value("It was Anna", None, "anna") == 1
    assert value("It was Berta", None, "anna") == 0
    assert pd.isna(value("It was Berta", None, None))
    assert pd.isna(value(None))


@pytest.mark.parametrize("slots", ["Graz", "[]", '["Graz"]', "[[]]", '[[""]]', "{}"])
def test_slots_that_are_none_are_told_with_the_qid(slots: str) -> None:
    with pytest.raises(DataError, match=r"column answer_slots \(qid='q'\): .* is no JSON list of lists"):
        value("Graz", slots)
