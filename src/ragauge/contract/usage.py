"""Tokens, money and time of calls of a chat model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace

import numpy as np
import pandas as pd

TOKENS = ("prompt_tokens", "completion_tokens", "cached_tokens", "written_tokens")
# Columns of frames that stand there only where a server reported them for a row.
OPTIONAL = ("cached_tokens", "written_tokens")
_WHOLE = ("prompt_tokens", "completion_tokens", "calls", "usage_unknown")


@dataclass(frozen=True)
class Usage:
    """Tokens, US dollars and seconds of one call, or the sums of several.

    prompt_tokens: all tokens of the prompt, those of `cached_tokens` and `written_tokens` too.
    cached_tokens: prompt tokens that the server served from its own cache. written_tokens: those that it wrote to it.
    calls: how often the server was asked and charged for it, or may have, the calls without an answer too.
    usage_unknown: the number of them whose tokens are not known; their cost is the most they can cost.

    A count is None where no server reported it.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float = 0.0
    seconds: float = 0.0
    calls: int = 0
    usage_unknown: int = 0
    cached_tokens: int | None = None
    written_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        """The sums, field by field; a count that one of them lacks is the other's."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in _FIELDS)
        return Usage(*(one if two is None else two if one is None else one + two for one, two in pairs))

    def free(self) -> Usage:
        """The same tokens and calls, at no cost and in no time."""
        return replace(self, cost_usd=0.0, seconds=0.0)

    def told(self) -> dict[str, float]:
        """The fields that differ from those of `Usage()`, as JSON values."""
        return {name: value for name, value in asdict(self).items() if value != getattr(Usage, name)}

    def part(self, i: int, n: int) -> Usage:
        """The i-th of n equal parts; those of a count are whole numbers and add up to it. Calls are in every part."""
        tokens = {name: None if (count := getattr(self, name)) is None else (count + i) // n for name in TOKENS}
        return Usage(
            **tokens,
            cost_usd=self.cost_usd / n,
            seconds=self.seconds / n,
            calls=self.calls,
            usage_unknown=self.usage_unknown,
        )


NO_USAGE = Usage()
_FIELDS = tuple(field.name for field in fields(Usage))


def usage_columns(usages: Sequence[Usage]) -> dict[str, np.ndarray]:
    """Columns of a frame by field, a row per usage.

    An unknown count of prompt or completion tokens is 0. The columns of OPTIONAL are float64, NaN where unknown, and
    are left out where no row has one.
    """
    found: dict[str, np.ndarray] = {}
    for name in _FIELDS:
        values = [getattr(usage, name) for usage in usages]
        if name in _WHOLE:
            found[name] = np.array([value or 0 for value in values], dtype=np.int64)
        elif name not in OPTIONAL or any(value is not None for value in values):
            found[name] = np.array(values, dtype=float)
    return found


def usage_of(frame: pd.DataFrame) -> Usage:
    """The tokens of a frame with `usage_columns`, summed over its rows; None for a count that no row has."""
    sums = (frame[name].sum(min_count=1) if name in frame else math.nan for name in TOKENS)
    prompt, completion, cached, written = (None if math.isnan(n) else int(n) for n in sums)
    return Usage(prompt, completion, cached_tokens=cached, written_tokens=written)
