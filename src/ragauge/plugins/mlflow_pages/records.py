"""Converts topics to records of an evaluation dataset of MLflow and back, after edits by people."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

from ragauge.contract.checks import is_number
from ragauge.contract.topics import HISTORY, attributes_of, is_unanswerable, references
from ragauge.contract.topics import wrong_answers as wrong_answers_of
from ragauge.datasets.fields import BadRow, short, strings, valid_string
from ragauge.datasets.files import parse_json
from ragauge.plugins.mlflow_pages.topics import expected_part, parts_of
from ragauge.plugins.traces.rows import decoded, truth_columns
from ragauge.plugins.traces.shapes import question_of
from ragauge.track.feedback import OWN_TAG

MORE_TAG = "ragauge.topic"  # on a record: JSON of a topic's place, attributes and wrong answers
RESPONSE, OTHERS = "expected_response", "other_expected_responses"  # the first reference answer, and further ones
CONTEXT, FACTS = "expected_retrieved_context", "expected_facts"


def records_of(topics: pd.DataFrame, evidence: pd.DataFrame) -> list[dict[str, Any]]:
    """A record per topic: the question, the expectations of its answer, and the rest as tags.

    `inputs` are the question and earlier turns. MLflow tells records apart by their inputs: topics that have the same
    have their qid there, too.
    """
    parts = parts_of(evidence)
    answers, wrong = references(topics), wrong_answers_of(topics)
    marked = dict(zip(topics["qid"], is_unanswerable(topics), strict=True))
    names = attributes_of(topics)
    inputs = [_inputs(row) for row in topics.to_dict("records")]
    often = Counter(map(key_of, inputs))
    found = []
    for number, (row, given) in enumerate(zip(topics.to_dict("records"), inputs, strict=True)):
        qid = row["qid"]
        first, *others = answers[qid] or (None,)
        expected = {
            RESPONSE: first,
            OTHERS: others,
            CONTEXT: [_part(part) for part in parts.get(qid, ())],
            "unanswerable": bool(marked[qid]),
        }
        more = {
            "place": number,
            "attributes": {name: row[name] for name in names if pd.notna(row[name])},
            "wrong_answers": list(wrong.get(qid, ())),
        }
        found.append(
            {
                "inputs": given | ({"qid": qid} if often[key_of(given)] > 1 else {}),
                "expectations": {name: value for name, value in expected.items() if value},
                "tags": {OWN_TAG: qid, MORE_TAG: json.dumps(more, ensure_ascii=False)},
            }
        )
    return found


def key_of(inputs: Mapping[str, Any]) -> str:
    """The text by which MLflow distinguishes records."""
    return json.dumps(inputs, sort_keys=True)


def topic_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record {record, inputs, expectations, tags} as a row of a topics file; BadRow if it cannot be one.

    One that ragauge did not write has its own id as qid, and its expected facts are the reference answer where it has
    no expected response.
    """
    try:
        return _topic(record)
    except RecursionError:
        raise BadRow("its values are nested too deep") from None


def _topic(record: Mapping[str, Any]) -> dict[str, Any]:
    inputs, expected, tags = (_object(record, name) for name in ("inputs", "expectations", "tags"))
    question = inputs.get("question") if OWN_TAG in tags else question_of(inputs)
    if not isinstance(question, str) or not question.strip():
        raise BadRow(f"inputs hold no question: {short(inputs)}")
    more = _more(tags)
    given = [value for value in (expected.get(RESPONSE), *listed(expected, OTHERS)) if value is not None]
    answers = [valid_string(value, repr(RESPONSE)) for value in given]
    if not answers:
        answers = truth_columns([{FACTS: listed(expected, FACTS)}])["references"]
    return {
        **more.get("attributes", {}),
        "qid": tags.get(OWN_TAG, record["record"]),
        "query": question,
        "answers": answers,
        "evidence": [part for one in listed(expected, CONTEXT) for part in _evidence(one)],
        "unanswerable": expected.get("unanswerable", False),
        "wrong_answers": more.get("wrong_answers", []),
        HISTORY: strings(inputs, HISTORY),
    }


def _object(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object of the record, {} if there is none; BadRow for anything else."""
    value = record[name]
    if value is not None and not isinstance(value, Mapping):
        raise BadRow(f"its {name} are no object with named values: {short(value)}")
    return value or {}


def listed(expected: Mapping[str, Any], name: str) -> list[Any]:
    """The list under the name of an expectation, [] without any; BadRow for another value."""
    value = decoded(expected.get(name))
    if value is not None and not isinstance(value, list):
        raise BadRow(f"{name!r} is no list: {short(value)}")
    return value or []


def place_of(tags: Mapping[str, str]) -> float:
    """The place of a record's topic in its source dataset.

    Infinity for a record that people made, and for one whose tag they changed to what is no place.
    """
    try:
        place = _more(tags).get("place")
    except BadRow:
        return math.inf
    return float(place) if place is not None and is_number(place) else math.inf


def _more(tags: Mapping[str, str]) -> dict[str, Any]:
    """The content of a record's tag, {} without one; BadRow if ragauge did not write the tag in this form."""
    text = tags.get(MORE_TAG, "{}")
    bad = BadRow(f"tag {MORE_TAG!r} is no longer what ragauge wrote: {short(text)}")
    try:
        found = parse_json(text.encode("utf-8", "surrogatepass"))
    except BadRow:
        raise bad from None
    if not isinstance(found, dict) or not isinstance(found.get("attributes", {}), dict):
        raise bad
    return found


def _inputs(row: Mapping[Any, Any]) -> dict[str, Any]:
    history = [str(text) for text in row.get(HISTORY, ())]
    return {"question": row["query"]} | ({HISTORY: history} if history else {})


def _part(row: Mapping[Any, Any]) -> dict[str, Any]:
    return expected_part(row) | ({"relevance": int(row["relevance"])} if row.get("relevance", 1) != 1 else {})


def _evidence(one: Any) -> list[dict[str, Any]]:
    """The evidence part in an entry of the expected context; BadRow for an invalid entry."""
    found = truth_columns([{CONTEXT: [one]}])["evidence"]
    if not found:
        raise BadRow(f"{CONTEXT!r} holds neither 'content' nor 'doc_uri': {short(one)}")
    grade = {"relevance": one["relevance"]} if isinstance(one, Mapping) and "relevance" in one else {}
    return [{key: value for key, value in part.items() if value is not None} | grade for part in found]
