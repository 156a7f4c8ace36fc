"""What stands under a key of a row, of the kind that it must be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragauge.datasets._gather import BadRow, valid_string


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
