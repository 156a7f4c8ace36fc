"""Rank-biased overlap of two rankings."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def rank_biased_overlap(first: Sequence[Hashable], second: Sequence[Hashable], persistence: float) -> float:
    """The agreement of two rankings, weighted to the top, in [0, 1]: 1 for the same, 0 for none in common.

    first, second: the items of each, best first, each item once; they may be of different lengths, and 0 is given
    where one is empty. persistence: p in (0, 1); the first 1 / (1 - p) ranks or so count. Below the end of a
    ranking the agreement is taken to go on as it was (RBO_EXT: Webber, Moffat & Zobel, TOIS 28(4), 2010, formula 32).
    """
    p, (short, long) = persistence, sorted((list(first), list(second)), key=len)
    s, n = len(short), len(long)
    if not s:
        return 0.0
    seen_short: set[Hashable] = set()
    seen_long: set[Hashable] = set()
    common, at_s, total = 0, 0, 0.0
    for d in range(1, n + 1):
        item = long[d - 1]
        seen_long.add(item)
        if d <= s:
            other = short[d - 1]
            seen_short.add(other)
            common += (other in seen_long) + (item in seen_short) - (item == other)
            at_s = common
        else:
            common += item in seen_short
        # Below its end the shorter one goes on to agree as it did there.
        beyond = at_s * (d - s) / s if d > s else 0.0
        total += (common + beyond) / d * p**d
    return min((1 - p) / p * total + ((common - at_s) / n + at_s / s) * p**n, 1.0)
