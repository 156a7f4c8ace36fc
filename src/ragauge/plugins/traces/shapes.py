"""Extracts question, contexts and answer of a trace, whatever library wrote its spans.

Spans hold JSON values, whose shapes are those of LangChain, LlamaIndex, OpenAI and of functions under
`mlflow.trace`. Nothing here needs MLflow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

_QUESTION_KEYS = (
    "question", "query", "user_input", "user_query", "input", "prompt", "message", "text", "query_str",
    "str_or_query_bundle", "query_bundle", "content",
)  # fmt: skip
_ANSWER_KEYS = (
    "answer", "response", "output", "output_text", "result", "final_answer", "text", "content", "message",
    "generations",
)  # fmt: skip
_TEXT_KEYS = ("page_content", "content", "text")
_LIST_KEYS = ("documents", "docs", "nodes", "source_nodes", "results", "chunks", "context")
_INDEXED_KEYS = ("documents", "docs", "nodes", "chunks", "texts")  # what an index is built from
_NAME_KEYS = ("doc_uri", "source", "url", "uri", "file_path", "file_name", "doc_id", "document_id")
_USER, _ASSISTANT = ("user", "human"), ("assistant", "ai", "AIMessageChunk")


@dataclass(frozen=True)
class Passage:
    """A text from a RETRIEVER span, and its document (None if not given)."""

    text: str
    document: str | None


def question_of(inputs: Any) -> str | None:
    """The question in the inputs of a root span; None if not found.

    A text is the question. In messages it is the last one of the user. In a mapping it stands under `messages`, one of
    the usual names (question, query, input, …), or under its only key.
    """
    return _text(inputs, _QUESTION_KEYS, _USER)


def answer_of(outputs: Any) -> str | None:
    """The answer in the outputs of a root span; None if not found.

    A text is the answer. In messages and choices it is the last one of the assistant. In a mapping it stands under
    `messages`, `choices`, one of the usual names (answer, response, output, …), or its only key.
    """
    return _text(outputs, _ANSWER_KEYS, _ASSISTANT)


def holds_texts(inputs: Any) -> bool:
    """True if the inputs of a span are texts to be split, embedded or indexed."""
    return isinstance(inputs, Mapping) and any(isinstance(inputs.get(key), list) for key in _INDEXED_KEYS)


def _text(value: Any, keys: Sequence[str], role: Sequence[str]) -> str | None:
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, list):
        return _of_list(value, keys, role)
    if not isinstance(value, Mapping):
        return None
    for key, last in (("messages", None), ("choices", 1)):  # of several choices the first was shown
        if isinstance(value.get(key), list):
            return _of_list(value[key][:last], keys, role)
    for key in keys:
        found = _text(value.get(key), keys, role)
        if found is not None:
            return found
    if len(value) != 1 or holds_texts(value):
        return None
    return _text(next(iter(value.values())), keys, role)


def _of_list(values: list[Any], keys: Sequence[str], role: Sequence[str]) -> str | None:
    """The last message of the role, or the text of the only element, or the texts of a message's parts."""
    if values and all(isinstance(v, Mapping) and v.get("type") in _PART_TYPES for v in values):
        return "".join(v["text"] for v in values if isinstance(v.get("text"), str)).strip() or None
    messages = [(_role(v), v) for v in values]
    for told, message in reversed(messages):
        if told in role:
            content = message[1] if isinstance(message, (list, tuple)) else message.get("content")
            return _text(content, keys, role)
    if len(values) == 1:
        only = values[0]
        inner = only.get("message") if isinstance(only, Mapping) and "message" in only else only
        return _text(inner, keys, role) if _role(only) is None else None
    return None


_PART_TYPES = ("text", "input_text", "output_text", "image_url", "input_image", "input_file", "file")


def _role(message: Any) -> str | None:
    """The speaker, from {role, content}, LangChain's {type, content} and [role, text]; None for anything else."""
    if isinstance(message, Mapping) and "content" in message:
        told = message.get("role") or message.get("type")
        return told if isinstance(told, str) else None
    pair = isinstance(message, (list, tuple)) and len(message) == 2
    if pair and message[0] in (*_USER, *_ASSISTANT, "system", "tool") and isinstance(message[1], str):
        return str(message[0])
    return None


def passages_of(outputs: Any) -> list[Passage]:
    """The texts in the outputs of a RETRIEVER span, in order; skips items without text.

    An element is a text, MLflow's or LangChain's document ({page_content, metadata, id}), or LlamaIndex's
    node with score ({node: {text}}). They may stand under a key such as `documents` or `nodes`.
    """
    if isinstance(outputs, str):
        try:
            decoded = json.loads(outputs)
        except ValueError:
            return [Passage(outputs, None)] if outputs.strip() else []
        outputs = decoded if isinstance(decoded, (list, dict)) else [outputs]
    if isinstance(outputs, Mapping):
        listed = next((outputs[key] for key in _LIST_KEYS if isinstance(outputs.get(key), list)), None)
        outputs = listed if listed is not None else [outputs]
    return list(_passages(outputs)) if isinstance(outputs, list) else []


def _passages(values: list[Any]) -> Iterator[Passage]:
    for value in values:
        if isinstance(value, list) and value:  # (document, score)
            value = value[0]
        if isinstance(value, str):
            text, name = value, None
        elif isinstance(value, Mapping):
            of = value["node"] if isinstance(value.get("node"), Mapping) else value
            text = next((of[key] for key in _TEXT_KEYS if isinstance(of.get(key), str)), "")
            name = _document(of)
        else:
            continue
        if text.strip():
            yield Passage(text, name)


def _document(value: Mapping[str, Any]) -> str | None:
    """The name of a passage's document, from its metadata or the passage itself."""
    metadata = value.get("metadata")
    for where in (metadata if isinstance(metadata, Mapping) else {}, value):
        for key in _NAME_KEYS:
            found = where.get(key)
            if isinstance(found, (str, int)) and not isinstance(found, bool) and str(found).strip():
                return str(found)
    return None


def docno_of(document: str) -> str:
    """The document's name as a docno: without white space and chunk mark."""
    return re.sub(r"[\s\0]", lambda match: quote(match.group()), document.strip()).replace("%p", "%25p")
