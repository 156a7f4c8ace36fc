"""A row of the table of numbers against known truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

SEED = 1
FULL = 2000  # trials of a simulation, where the row does not say otherwise


@dataclass(frozen=True)
class Row:
    """A line of the table; `measure` takes the number of trials, `before` is what the code before it gave."""

    what: str
    setting: str
    wanted: str
    before: str
    measure: Callable[[int], str]
    trials: int = FULL  # 0: enumerated, nothing is drawn


def percent(*shares: float) -> str:
    """Shares as 12.3 %, several of them with `to` between the lowest and the highest."""
    low, high = min(shares), max(shares)
    return f"{100 * low:.1f} %" if low == high else f"{100 * low:.1f} to {100 * high:.1f} %"
