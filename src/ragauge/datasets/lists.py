"""Reads lists of texts in a cell or under a key, as values or printed.

`["Paris", 'City of Paris']` is a printed list of two texts, `[0, 1]` and `[sic] Paris` are one text each. A printed
list begins with `[` and ends with `]`. Between them stand only quoted texts, numbers, nulls and lists of these, as
JSON, Python or numpy print them. Tuples and sets, as Python prints them, are lists, too. In references and evidence at
least one text must be quoted.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from ragauge.datasets.fields import BadRow, short, valid_string

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<number>[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"""
    r"""|(?P<null>None|null|nan|NaN)\b|(?P<open>\[)|(?P<close>\])|,)\s*""",
    re.DOTALL,
)
_DEPTH = 2  # lists within lists


def printed_list(text: str) -> list[Any] | None:
    """The list printed in a text by JSON, Python or numpy; None for any other text."""
    text = text.strip()
    if text[:1] + text[-1:] in ("()", "{}"):
        found = _by_tokens(f"[{text[1:-1]}]")
        return found if found and (len(found) > 1 or text[0] == "{" or text[-2] == ",") else None
    if text[:1] + text[-1:] != "[]":
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return _by_tokens(text)
    return found if isinstance(found, list) else None


def _by_tokens(text: str) -> list[Any] | None:
    """The list, parsed by token: numpy prints no comma between two texts, and Python would join them."""
    whole: list[Any] = []
    open_lists, at = [whole], 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or not open_lists:
            return None
        at = token.end()
        kind, said = token.lastgroup, token.group().strip()
        if kind == "open":
            inner: list[Any] = []
            open_lists[-1].append(inner)
            open_lists.append(inner)
        elif kind == "close":
            open_lists.pop()
        elif kind == "null":
            open_lists[-1].append(None)
        elif kind is not None:
            try:
                open_lists[-1].append(ast.literal_eval(said.replace("\n", "\\n").replace("\r", "\\r")))
            except (ValueError, SyntaxError):
                return None
        if len(open_lists) > _DEPTH + 1 or (open_lists == [whole] and at < len(text)):
            return None
    return whole[0] if open_lists == [whole] and len(whole) == 1 else None


def flat(values: list[Any]) -> list[Any]:
    """The values with nested lists flattened."""
    return [one for value in values for one in (value if isinstance(value, list) else [value])]


def listed_texts(text: str) -> list[str] | None:
    """The texts of a printed list that is empty or has a quoted text; None for any other text."""
    found = printed_list(text)
    if found is None:
        return None
    values = [one for one in flat(found) if not is_null(one)]
    if values and not any(isinstance(one, str) for one in values):
        return None
    texts = [as_text(one) for one in values]
    return texts if all(isinstance(one, str) for one in texts) else None


def all_texts(value: Any, what: str) -> list[str]:
    """The texts of a value: a text, a number, a list of these (lists within it, too), or a printed list of texts.

    An object with a list under `text`, as SQuAD has answers, is that list. BadRow, which begins
    with `what`, for anything else.
    """
    if isinstance(value, Mapping) and "text" in value:
        value = value["text"]
    if isinstance(value, str):
        listed = listed_texts(valid_string(value, what))
        return [value] if listed is None else listed
    texts = [as_text(one) for one in flat(value if isinstance(value, list) else [value])]
    if not all(isinstance(one, str) for one in texts):
        raise BadRow(f"{what} is neither a text nor a list of texts: {short(value)}")
    return [valid_string(one, what) for one in texts]


def as_text(value: Any) -> Any:
    """A finite number as text, 5.0 as 5; any other value unchanged."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else repr(value)
    return value


def is_null(value: Any) -> bool:
    """Whether a value is null or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))
