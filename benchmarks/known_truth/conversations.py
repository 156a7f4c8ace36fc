"""Turns in conversations: what intervals hold over conversations, and over turns as if these were independent."""

from __future__ import annotations

from functools import cache

import numpy as np

import simulations.conversations as sim
from known_truth.rows import SEED, Row, percent


@cache
def _found(kind: str, trials: int) -> list[np.ndarray]:
    return [sim.coverage(kind, rho, trials, SEED) for rho in sim.RHOS]


def row(kind: str, trials: int, over: int = 0) -> str:
    """Coverage at each correlation, and how wide intervals are beside those over turns; `over` 1: over turns."""
    found = _found(kind, trials)
    said = ", ".join(percent(float(one[over, 0])) for one in found)
    wide = ", ".join(f"{one[0, 1] / one[1, 1]:.2f}" for one in found)
    return said if over else f"{said}; {wide} times as wide"


_BEFORE = {  # over turns, as if they were independent
    "share of right answers": "95.3 %, 81.4 %, 67.7 %",
    "mean score": "96.5 %, 77.0 %, 65.5 %",
    "paired difference of shares": "94.9 %, 79.8 %, 66.1 %",
    "paired difference of scores": "94.6 %, 73.1 %, 59.7 %",
    "later turns less the first, which are worse": "93.3 %, 95.5 %, 97.8 %",
    "second half less the first half, which is worse": "95.6 %, 97.7 %, 98.6 %",
    "second half less the first half, no turn is worse": "93.9 %, 96.5 %, 98.8 %",
}

SECTIONS: dict[str, list[Row]] = {
    "Conversations: turns that hang together": [
        Row(
            f"conversations: {kind}",
            "30 conversations of 8 turns; independent turns, latent correlation 0.3, 0.6",
            "93 to 97 %, and the simulation's error",
            _BEFORE[kind],
            lambda n, kind=kind: row(kind, n),  # type: ignore[misc]
            1000,
        )
        for kind in sim.TRIALS
    ]
}
