"""Scores of unrelated text, raw and corrected, and what spellings cost."""

from __future__ import annotations

import simulations.floor as sim
from known_truth.rows import SEED, Row

_FLOOR_BEFORE = {100: "0.089", 1000: "0.142"}
_LOST_BEFORE = ("0.234", "0.261", "0.427", "0.263", "0.538")


def _corrected(trials: int, n: int) -> str:
    return f"{sim.unrelated(max(trials, 1), SEED)[1][n]:.3f}"


def _lost(spelling: str) -> str:
    value, parts = sim.loss(spelling, folded=True)
    return f"{value:.3f} ({parts} parts)"


SECTIONS: dict[str, list[Row]] = {
    "IR score: unrelated text, and other spellings": [
        *(
            Row(
                "mean score of random chunks that the floor has not seen, `measure.correct=floor`",
                f"sample dataset, 120 topics, N = {n:,} words",
                "0, at most 0.03",
                f"{_FLOOR_BEFORE[n]} (the raw score)",
                lambda trials, n=n: _corrected(trials, n),  # type: ignore[misc]
                20,
            )
            for n in sim.GRID
        ),
        *(
            Row(
                f"score lost by {spelling} in the document, `measure.fold=[{sim.SPELLINGS[spelling][0]}]`",
                "sample dataset, evidence that it concerns",
                "0",
                before,
                lambda _, spelling=spelling: _lost(spelling),  # type: ignore[misc]
                0,
            )
            for spelling, before in zip(sim.SPELLINGS, _LOST_BEFORE, strict=True)
        ),
    ],
}
