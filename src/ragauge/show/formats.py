"""Formats the numbers of a report; – stands for an unknown one."""

from __future__ import annotations

from collections.abc import Callable

from ragauge.contract.finding import Kind, Num

NOTHING = "–"


def score(value: float | None) -> str:
    """A score with three decimals."""
    return f"{value:.3f}".replace("-", "−") if value is not None and value == value else NOTHING


def signed(value: float | None) -> str:
    """A difference of scores."""
    return f"{value:+.3f}".replace("-", "−") if value is not None and value == value else NOTHING


def share(value: float | None) -> str:
    """A share in per cent."""
    return f"{100 * value:.1f} %" if value is not None and value == value else NOTHING


def points(value: float | None) -> str:
    """A difference of shares in percentage points."""
    return f"{100 * value:+.1f}".replace("-", "−") if value is not None and value == value else NOTHING


def p_value(value: float | None) -> str:
    """A p value with three decimals, or `< 0.001`."""
    if value is None or value != value:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def whole(value: float) -> str:
    """A count with commas."""
    return f"{int(value):,}"


def usd(value: float) -> str:
    """US dollars; cents where there is a dollar, else four decimals."""
    return f"{value:,.2f}" if value >= 1 or value == 0 else f"{value:.4f}"


def seconds(value: float) -> str:
    """Seconds, or minutes from two minutes on."""
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"


def milliseconds(value: float) -> str:
    """Milliseconds below a second, else as `seconds`."""
    return f"{1000 * value:.0f} ms" if value < 1 else seconds(value)


_WRITTEN: dict[str, Callable[[float], str]] = {
    "score": score,
    "share": share,
    "points": points,
    "signed": signed,
    "p": p_value,
    "whole": whole,
    "usd": usd,
    "seconds": seconds,
    "milliseconds": milliseconds,
}


def written(value: float | None, kind: Kind) -> str:
    """The number in the format of its kind; – if it is missing."""
    return NOTHING if value is None or value != value else _WRITTEN[kind](value)


def interval(number: Num) -> str:
    """`0.512 to 0.634`, the interval of a number; empty where it has none."""
    lo, hi = number.lo, number.hi
    if lo is None or hi is None or lo != lo or hi != hi:
        return ""
    return f"{written(lo, number.kind)} to {written(hi, number.kind)}"
