"""Records of an evaluation dataset as people leave them: a row, or a bad row, and always a place."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from ragauge.datasets import BadRow
from ragauge.plugins.mlflow_pages.dataset import _own_tags
from ragauge.plugins.mlflow_pages.records import MORE_TAG, place_of, topic_of

OWN = {"ragauge.qid": "q1"}
DEEP: Any = {"question": "What?"}
for _ in range(3_000):
    DEEP = {"a": DEEP}


def record(inputs: Any = None, expectations: Any = None, **tags: str) -> dict[str, Any]:
    given = {"question": "What?"} if inputs is None else inputs
    return {"record": "r1", "inputs": given, "expectations": expectations, "tags": {**OWN, **tags}}


@pytest.mark.parametrize(
    "tag",
    [
        "[]",
        "5",
        "null",
        "{",
        "[" * 100_000,
        '{"attributes": [1]}',
        '{"attributes": null}',
        '{"place": 1e999}',
        "\ud800",
    ],
)
def test_a_tag_that_is_not_as_it_was_written_is_a_bad_row_at_the_end(tag: str) -> None:
    assert place_of({MORE_TAG: tag}) == math.inf
    with pytest.raises(BadRow, match=r"tag 'ragauge\.topic' is no longer what ragauge wrote"):
        topic_of(record(**{MORE_TAG: tag}))


@pytest.mark.parametrize("place", ["x", None, [1], True, {"a": 1}, "7"])
def test_a_place_that_is_none_is_the_end(place: Any) -> None:
    tag = json.dumps({"place": place, "attributes": {"type": "bridge"}})
    assert place_of({MORE_TAG: tag}) == math.inf
    assert topic_of(record(**{MORE_TAG: tag}))["type"] == "bridge"
    assert place_of({MORE_TAG: '{"place": 7}'}) == 7


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (record(inputs=[1]), "its inputs are no object"), (record(inputs="What?"), "its inputs are no object"),
        (record(expectations=[1]), "its expectations are no object"), (record(inputs={"question": 5}), "no question"),
        (record(inputs=DEEP), "no question"), ({**record(inputs=DEEP), "tags": {}}, "nested too deep"),
        (record(expectations={"expected_response": ["a"]}), "'expected_response' is not a string"),
        (record(expectations={"other_expected_responses": {"a": 1}}), "is no list"),
        (record(expectations={"expected_retrieved_context": [5]}), "holds neither 'content' nor 'doc_uri'"),
        (record(expectations={"expected_retrieved_context": "[" * 100_000}), "is no list"),
        (record(inputs={"question": "What?", "history": "x"}), "'history' is not a list"),
    ],
)  # fmt: skip
def test_what_people_changed_to_no_topic_is_a_bad_row(given: dict[str, Any], told: str) -> None:
    with pytest.raises(BadRow, match=told):
        topic_of(given)


def test_tags_that_are_no_texts_or_no_object_are_read_as_such() -> None:
    assert _own_tags(None) == _own_tags(["ragauge.qid"]) == _own_tags({"other": "x"}) == {}
    assert _own_tags({"ragauge.qid": 5, 7: "x"}) == {"ragauge.qid": "5"}
