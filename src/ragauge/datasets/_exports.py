"""Turns rows that other tools export, with objects in them, into flat rows of `ragauge.datasets.recordings`.

FlashRAG, Langfuse, LangSmith, Braintrust and MLflow write objects under `input`, `output` and `expected`: their keys
become keys of the row. Results of promptfoo have keys of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ragauge.datasets.fields import BadRow
from ragauge.datasets.lists import is_null

Names = Mapping[str, Sequence[str]]

# Keys of an object that stand for a whole file: a list of its rows, or an object with that list.
_ROWS = ("results", "data", "rows", "samples", "test_cases", "testCases", "examples", "items", "records")
_INPUT = ("input", "inputs")
_OF_A_ROW = ("question", "query", "user_input", *_INPUT, "vars", "qid", "id", "_id", "docno", "text", "label", "system")
_OUTPUT = ("output", "outputs")
_EXPECTED = ("expected", "expected_output", "expectedOutput", "expectations", "reference_outputs")
_WORDS = ("text", "content", "contents", "page_content", "value", "result")  # of a text alone in an object
_STATED = ("equals", "similar", "factuality")  # promptfoo's assertions whose value is a reference answer
_DOCNO = ("docno", "doc_id", "id", "_id", "document_id")


def rows_within(row: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """The rows within a file that is one object; None if the object is itself a row."""
    if _held(row, _OF_A_ROW):
        return None
    for name in _ROWS:
        value = row.get(name)
        if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            return value
        if isinstance(value, Mapping) and (found := rows_within(value)) is not None:
            return found
    return None


def opened(row: Mapping[str, Any], names: Names) -> Mapping[str, Any]:
    """The row with its objects replaced by their contents; unchanged without objects.

    BadRow for a result of promptfoo whose variables hold no question.
    """
    if isinstance(row.get("vars"), Mapping) and _held(row, ("response", "testCase", "provider", "promptIdx")):
        return _of_promptfoo(row, names)
    found = dict(row)
    for keys, to in ((_INPUT, "question"), (_OUTPUT, "answer"), (_EXPECTED, "reference")):
        for key in keys:
            inner = _object(row.get(key))
            if inner is not None:
                del found[key]
                found = {**_inside(inner, to, names), **{k: v for k, v in found.items() if not is_null(v)}}
    return found if len(found) != len(row) or found.keys() != row.keys() else row


def text_of(entry: Any) -> Any:
    """The text of a retrieved passage that is an object; any other value as it is."""
    if not isinstance(entry, Mapping):
        return entry
    return next((entry[name] for name in _WORDS if isinstance(entry.get(name), str)), entry)


def docnos_of(entries: Sequence[Any]) -> list[str] | None:
    """The docnos of retrieved passages that are objects; None where one of them has none."""
    found = [
        next((str(one[name]) for name in _DOCNO if isinstance(one.get(name), (str, int))), "")
        for one in entries
        if isinstance(one, Mapping)
    ]
    named = [one for one in found if one.split() == [one]]
    return named if entries and len(named) == len(entries) else None


def _inside(inner: Mapping[str, Any], to: str, names: Names) -> dict[str, Any]:
    """The keys of an object as keys of a row; the key of its main text becomes `to`."""
    main = {"question": names["question"], "answer": names["answer"], "reference": names["reference"]}[to]
    # The answer that is expected is called an answer there, too.
    main = (*main, *names["references"], *names["answer"]) if to == "reference" else main
    name = _held(inner, (*main, *_WORDS)) or _only_text(inner, names)
    rest = {key: value for key, value in inner.items() if key != name}
    return rest if name is None else {**rest, to: inner[name]}


def _of_promptfoo(row: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """A result of promptfoo: its variables, the output, and the reference of its assertions."""
    given: Mapping[str, Any] = row["vars"]
    name = _held(given, names["question"]) or _only_text(given, names)
    if name is None:
        raise BadRow(
            f"this is a result of promptfoo, and none of its vars ({', '.join(given) or 'none'}) is a question; "
            f"its name is one of {', '.join(names['question'])}"
        )
    response = _object(row.get("response")) or {}
    usage = _object(response.get("tokenUsage")) or {}
    asserts = [one for one in (_object(row.get("testCase")) or {}).get("assert") or () if isinstance(one, Mapping)]
    stated = [one.get("value") for one in asserts if one.get("type") in _STATED]
    provider = row.get("provider")
    of = provider if isinstance(provider, Mapping) else {"id": provider}
    prompt = row.get("promptIdx")
    found = {
        **{key: value for key, value in given.items() if key != name},
        "question": given[name],
        "qid": row.get("testIdx"),
        "system": " ".join(str(one) for one in (of.get("label") or of.get("id"), prompt or None) if one is not None),
        "response": response.get("output"),
        "error": row.get("error") or response.get("error"),
        "prompt_tokens": usage.get("prompt"),
        "completion_tokens": usage.get("completion"),
        "cost_usd": row.get("cost"),
        "references": [one for one in stated if isinstance(one, str)] or None,
    }
    if _held(given, names["reference"]):
        del found["references"]
    if isinstance(found.get("context"), (str, list)):  # a variable of the prompt: what the LLM read
        context = found.pop("context")
        found.setdefault("contexts", [context] if isinstance(context, str) else context)
    return {key: value for key, value in found.items() if not is_null(value) and value != ""}


def _object(value: Any) -> Mapping[str, Any] | None:
    """An object, given as such or as JSON text; None for anything else."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, Mapping) else None


def _held(row: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if not is_null(row.get(name))), None)


def _only_text(inner: Mapping[str, Any], names: Names) -> str | None:
    """The single key of an object with a text and without a meaning of its own; None unless exactly one."""
    known = {name for of_key in names.values() for name in of_key}
    texts = [key for key, value in inner.items() if isinstance(value, str) and key not in known]
    return texts[0] if len(texts) == 1 else None
