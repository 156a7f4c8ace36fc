"""How answer measures may be shown, and how a run keeps that."""

from __future__ import annotations

from typing import Any

import pytest

from ragauge.contract.answer_measures import ANSWER_MEASURES_TAG, as_record, as_tag, checked, from_tags, in_order
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.measures import AnswerMeasureInfo

EM = AnswerMeasureInfo("em", "exact match", unit="share")


def info(**changes: Any) -> AnswerMeasureInfo:
    return AnswerMeasureInfo(**({"name": "warmth", "label": "warmth"} | changes))


def test_measures_that_can_be_shown_are_given_in_their_order() -> None:
    assert checked({"a": [EM], "b": [info(), info(name="heat_2")]}) == [EM, info(), info(name="heat_2")]


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (info(name="2warm"), "name '2warm': allowed are letters, digits and _, a letter first"),
        (info(name="a b"), "name 'a b'"),
        (info(direction="up"), "direction 'up': allowed are "),
        (info(unit="%"), "unit '%': allowed are "),
        (info(of="chunk"), "of 'chunk': allowed are "),
        (info(label=" "), "label and section may not be empty"),
        (info(section=""), "label and section may not be empty"),
        (info(name="label"), "the name 'label' is that of a metric or column of ragauge's own"),
        (info(name="ir_score_of_mine"), "the name 'ir_score_of_mine' is that of"),
        (info(name="em"), r"answers.x and answers.a would both write 'em'"),
        (info(name="em_lo"), r"answers.x and answers.a would both write 'em_lo'"),
        (info(name="ranked"), r"answers.x and measures=R would both write 'ranked'"),
    ],
)
def test_what_cannot_be_shown_is_refused_by_its_key(one: AnswerMeasureInfo, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked({"a": [EM], "x": [one]}, [AnswerMeasureInfo("ranked", "R")])
    assert str(caught.value).startswith(("answers.x: ", "answers.x and "))
    assert told in str(caught.value)


def test_a_run_keeps_what_is_not_as_usual_and_it_is_read_again() -> None:
    assert as_record([info(), EM]) == [{"name": "warmth", "label": "warmth"}, {"name": "em", "label": "exact match",
                                                                              "unit": "share"}]  # fmt: skip
    tag = as_tag([EM, info(label="Wärme")])
    assert "Wärme" in tag[ANSWER_MEASURES_TAG]
    assert in_order([from_tags(tag), from_tags(as_tag([info(label="other")]))]) == [EM, info(label="Wärme")]
    assert as_tag([]) == {}
    assert from_tags({}) == []
    for broken in ("{", '[{"nome": 1}]'):
        with pytest.raises(DataError, match="cannot be read"):
            from_tags({ANSWER_MEASURES_TAG: broken})
