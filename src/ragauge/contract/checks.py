"""Checks of config values, each a ConfigError of one form: `group.key=value: allowed are ...`."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ragauge.contract.errors import ConfigError


def require(key: str, value: object, ok: bool, allowed: str) -> None:
    """Raises ConfigError naming the config key, its value and what is allowed, unless ok."""
    if not ok:
        raise ConfigError(f"{key}={shown(value)}: allowed are {allowed}")


_SHOWN = 60  # characters of a value


def shown(value: object) -> str:
    """The value's repr; a long one is truncated, a long number given by its number of digits."""
    if isinstance(value, int) and abs(value) >= 10**_SHOWN:
        return f"an integer of about {int(value.bit_length() * math.log10(2)) + 1:,} digits"
    text = repr(value)
    return text if len(text) <= _SHOWN * 10 else f"{text[: _SHOWN * 10]}..."


def require_count(
    key: str,
    value: object,
    least: int = 1,
    note: str = "",
    most: float = math.inf,
    null: str | None = None,
) -> None:
    """Raises ConfigError unless the value is an integer from `least` to `most`.

    `note` says what is counted or what a special value means. Where `null` is given None is allowed, too, and
    `null` says what it means ("" for nothing more).
    """
    ok = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    bounds = f"integers from {least}" + ("" if most == math.inf else f" to {most:,}")
    allowed = bounds + (f" ({note})" if note else "") + _or_null(null)
    require(key, value, ok or (value is None and null is not None), allowed)


def require_number(
    key: str, value: object, low: float, high: float = math.inf, above: bool = False, null: str | None = None
) -> None:
    """Raises ConfigError unless the value is a finite number in [low, high], or in (low, high] with `above`.

    Where `null` is given None is allowed, too, as in `require_count`.
    """
    ok = is_number(value) and (low < value if above else low <= value) and value <= high  # type: ignore[operator]
    start = f"above {low:g}" if above else f"from {low:g}"
    allowed = f"numbers {start}" + ("" if high == math.inf else f" to {high:g}") + _or_null(null)
    require(key, value, ok or (value is None and null is not None), allowed)


def require_fraction(key: str, value: object) -> None:
    """Raises ConfigError unless the value is a number above 0 and below 1."""
    ok = is_number(value) and 0 < value < 1  # type: ignore[operator]
    require(key, value, ok, "numbers above 0 and below 1")


def require_choice(key: str, value: object, choices: Iterable[str], note: str = "") -> None:
    """Raises ConfigError unless the value is one of the choices; `note` follows them in the message."""
    choices = tuple(choices)
    require(key, value, value in choices, ", ".join(choices) + (f" {note}" if note else ""))


def require_flag(key: str, value: object) -> None:
    """Raises ConfigError unless the value is True or False."""
    require(key, value, isinstance(value, bool), "true, false")


def require_text(key: str, value: object, what: str) -> None:
    """Raises ConfigError unless the value is a string with more than white space; `what` names it."""
    require(key, value, isinstance(value, str) and bool(value.strip()), what)


def is_number(value: object) -> bool:
    """Whether the value is a finite int or float, and no bool."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float holds
        return False


def _or_null(meaning: str | None) -> str:
    return "" if meaning is None else f", and null ({meaning})" if meaning else ", and null"
