"""How numbers are written in a report; – stands for one that is not known."""

from __future__ import annotations

_NOTHING = "–"


def score(value: float | None) -> str:
    """A score with three decimals."""
    return f"{value:.3f}".replace("-", "−") if value is not None and value == value else _NOTHING


def signed(value: float | None) -> str:
    """A difference of scores."""
    return f"{value:+.3f}".replace("-", "−") if value is not None and value == value else _NOTHING


def share(value: float | None) -> str:
    """A share in per cent."""
    return f"{100 * value:.1f} %" if value is not None and value == value else _NOTHING


def points(value: float | None) -> str:
    """A difference of shares in percentage points."""
    return f"{100 * value:+.1f}".replace("-", "−") if value is not None and value == value else _NOTHING


def p_value(value: float | None) -> str:
    """A p with three decimals, or that it is below 0.001."""
    if value is None or value != value:
        return _NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def whole(value: float) -> str:
    """A count with commas."""
    return f"{int(value):,}"


def usd(value: float) -> str:
    """US dollars; cents where there is a dollar, else four decimals."""
    return f"{value:,.2f}" if value >= 1 or value == 0 else f"{value:.4f}"


def seconds(value: float) -> str:
    """Seconds, from two minutes on in minutes."""
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"


def milliseconds(value: float) -> str:
    """Milliseconds below a second, else as `seconds`."""
    return f"{1000 * value:.0f} ms" if value < 1 else seconds(value)
