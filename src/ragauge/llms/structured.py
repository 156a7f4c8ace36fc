"""JSON schemas of replies: how they are written, how servers take them, and what a server says that takes none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ragauge.llms.failures import status_of, told_in

Schema = Mapping[str, Any]

NONE, FORMAT, RESPONSE_FORMAT = "none", "format", "response_format"  # values of `schema`
WAYS = (NONE, FORMAT, RESPONSE_FORMAT)
TEXT: Schema = {"type": "string"}
TRUTH: Schema = {"type": "boolean"}
_MOST_NAMED = 100  # numbers that a schema lists; servers take no longer lists, or take their time
_REFUSALS = frozenset({400, 422, 500, 501})
_WORDS = ("format", "schema", "grammar", "structured", "guided")  # of servers that refuse a schema


def fields(**properties: Schema) -> Schema:
    """The schema of an object with exactly these keys, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def numbered_fields(n: int, value: Schema) -> Schema:
    """The schema of an object with the keys "1" to "n"."""
    return fields(**{str(number): value for number in range(1, n + 1)})


def list_of(items: Schema) -> Schema:
    """The schema of a list."""
    return {"type": "array", "items": items}


def one_of(words: Iterable[str]) -> Schema:
    """The schema of a text that is one of these."""
    return {"type": "string", "enum": list(words)}


def number_in(numbers: range) -> Schema:
    """The schema of a whole number in a range; of any, where the range is long."""
    return {"type": "integer", "enum": list(numbers)} if 0 < len(numbers) <= _MOST_NAMED else {"type": "integer"}


def options_for(schema: Schema | None, way: str) -> dict[str, Any]:
    """The options of a request by which its server holds the reply to the schema."""
    if schema is None or way == NONE:
        return {}
    if way == FORMAT:
        return {FORMAT: schema}
    return {
        RESPONSE_FORMAT: {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}
    }


def without_schema(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a request for a server that takes no schema."""
    return {name: value for name, value in options.items() if name not in (FORMAT, RESPONSE_FORMAT)}


def refuses_schema(error: Exception) -> bool:
    """Whether a server refused a request and named the schema in it."""
    said = f"{error} {told_in(error)}".casefold()
    return status_of(error) in _REFUSALS and any(word in said for word in _WORDS)
