"""Reads typed values from a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Attribute = str | float | int | bool | None


class BadRow(Exception):
    """The error in the current row; of: the wrong part, such as `query`."""

    def __init__(self, what: str, of: str | None = None) -> None:
        super().__init__(what)
        self.of = of


def string(row: Any, key: str) -> str:
    """The string under `key` of a JSON object; BadRow where it is absent, no string or no valid Unicode."""
    if not isinstance(row, Mapping):
        raise BadRow(f"expected a JSON object with the key {key!r}, found {short(row)}")
    if key not in row:
        raise BadRow(f"key {key!r} is missing; the row has {', '.join(map(repr, row)) or 'no keys'}")
    return valid_string(row[key], repr(key))


def title_of(row: Mapping[str, Any]) -> str:
    """The title of a document's row, "" where it has none."""
    return "" if row.get("title") is None else string(row, "title")


def valid_string(value: Any, what: str) -> str:
    """The value if it is a string valid in UTF-8; `what` names it in the error."""
    if not isinstance(value, str):
        raise BadRow(f"{what} is not a string: {short(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        code = ord(value[error.start])
        if 0xDC80 <= code <= 0xDCFF:  # a byte that could not be decoded (PEP 383)
            raise BadRow(f"{what} is {not_utf8(code - 0xDC00)}") from None
        raise BadRow(f"{what} is not valid Unicode: {error}") from None
    return value


def not_utf8(byte: int) -> str:
    """The error message for a text with this byte, and the remedy."""
    return f"not UTF-8: it holds the byte 0x{byte:02x}; save the file as UTF-8"


def is_attribute(value: object) -> bool:
    """Whether a value can be a topic's attribute: a text, a number, true, false or null."""
    return isinstance(value, (str, float, int, bool, type(None)))


def listed(row: Mapping[str, Any], key: str) -> list[Any]:
    """The list under a key of a row; BadRow where there is none."""
    values = row.get(key) if isinstance(row, Mapping) else None
    if not isinstance(values, list):
        raise BadRow(f"key {key!r} {'is not a list' if key in row else 'is missing'}")
    return values


def listed_or_none(row: Mapping[str, Any], key: str) -> list[Any]:
    """The list under a key of a row; [] where it is absent or null."""
    return [] if row.get(key) is None else listed(row, key)


def strings(row: Mapping[str, Any], key: str) -> list[str]:
    """The list of strings under a key of a row; [] where it is absent or null."""
    return [valid_string(value, f"entry {number} of {key!r}") for number, value in enumerate(listed_or_none(row, key))]


def flag(row: Mapping[str, Any], key: str, default: bool = False) -> bool:
    """True or false under a key of a row; the default where it is absent or null."""
    value = row.get(key)
    if value is None:
        return default
    if type(value) is not bool:
        raise BadRow(f"key {key!r} is neither true nor false: {value!r}")
    return value


def optional_string(row: Mapping[str, Any], key: str) -> str | None:
    """The string under a key of a row; None where it is absent, null or blank."""
    value = row.get(key)
    if value is None:
        return None
    return valid_string(value, repr(key)).strip() or None


def short(value: Any) -> str:
    """The value as Python prints it, cut after 80 characters."""
    try:
        text = repr(value)
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deep"
    return text if len(text) <= 80 else text[:77] + "..."
