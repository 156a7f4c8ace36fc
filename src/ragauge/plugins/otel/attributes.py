"""Reads attributes of spans: values under dotted names, messages, documents, numbers and times."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ragauge.plugins.traces.shapes import Passage, passages_of

_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (-math.inf, 1.0))  # of times: the first whose bound is exceeded


def first(attributes: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """The value under the first dotted key that has one: a value, a JSON text, several attributes or an object."""
    return next((value for key in keys if (value := _under(attributes, key)) is not None), None)


def _under(attributes: Mapping[str, Any], key: str) -> Any:
    if attributes.get(key) is not None:
        return decoded(attributes[key])
    inside = {name[len(key) + 1 :]: value for name, value in attributes.items() if name.startswith(f"{key}.")}
    if inside:
        return _nested(inside)
    parts = key.split(".")
    for place in range(len(parts) - 1, 0, -1):
        inner = decoded(attributes.get(".".join(parts[:place])))
        if isinstance(inner, Mapping):
            return _under(inner, ".".join(parts[place:]))
    return None


def decoded(value: Any) -> Any:
    """The object, list or text that a JSON text holds; any other value as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _nested(value: Any) -> Any:
    """The value with dotted keys as objects, and objects with the keys 0, 1, … as lists."""
    if isinstance(value, list):
        return [_nested(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    tree: dict[str, Any] = {}
    for name, one in value.items():
        *parts, last = str(name).split(".")
        at: Any = tree
        for part in parts:
            at = at.setdefault(part, {}) if isinstance(at, dict) else None
        if isinstance(at, dict):
            at[last] = one
    found = {name: _nested(one) for name, one in tree.items()}
    is_list = found and all(name.isdecimal() for name in found)
    return [found[name] for name in sorted(found, key=int)] if is_list else found


def messages(value: Any, role: str) -> Any:
    """A list of messages, as OpenInference or GenAI write them, as {messages: [{role, content}]}; else the value.

    role: that of messages without one. Parts that are no text, such as calls of tools, are left out.
    """
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        return value
    of = [one["message"] if isinstance(one.get("message"), Mapping) else one for one in value]
    if not all("role" in one or "parts" in one for one in of):
        return value
    said = [{"role": one.get("role") or role, "content": _content(one)} for one in of]
    return {"messages": [one for one in said if one["content"]]}


def _content(message: Mapping[str, Any]) -> str:
    held = next((message[key] for key in ("content", "parts", "contents") if message.get(key)), "")
    if not isinstance(held, list):
        return str(held)
    parts = [one.get("message_content", one) for one in held if isinstance(one, Mapping)]
    texts = [one.get("content") or one.get("text") for one in parts if str(one.get("type", "text")).endswith("text")]
    return "".join(text for text in texts if isinstance(text, str))


def documents(value: Any) -> list[Passage] | None:
    """A retriever's documents, named by id, else by metadata, with "" for a lacking text; None if it is no list."""
    if not isinstance(value, list):
        return None
    found = []
    for one in map(_nested, value):
        of = (one.get("document") or one) if isinstance(one, Mapping) else {"content": one}
        texts = passages_of([{**of, "metadata": decoded(of.get("metadata"))}])
        name = of.get("id") if of.get("id") not in (None, "") else texts and texts[0].document
        if texts or name:
            found.append(Passage(texts[0].text if texts else "", str(name) if name else None))
    return found


def number(value: Any) -> float | None:
    """A finite number from 0, also if it is printed; None for anything else."""
    try:
        found = math.nan if value is None else float(value)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) and found >= 0 else None


def moment(value: Any) -> float | None:
    """A time in seconds since 1970; from ISO 8601 (UTC by default), a datetime, or a number of s, ms, µs or ns."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if (found := number(value)) is not None:
        return found / next(unit for bound, unit in _UNITS if found > bound) or None
    try:
        return moment(datetime.fromisoformat(str(value)))
    except ValueError:
        return None
