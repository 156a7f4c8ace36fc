"""The judge's prompts as a source of error."""

from __future__ import annotations

import simulations.prompts as sim
from known_truth.rows import SEED, Row, percent


def _shares(n: int, shift: float, trials: int) -> str:
    found = sim.shares_by_prompts(n, shift, trials, SEED)
    return "; ".join(
        f"{name} {percent(found[kind][0])} ({found[kind][1]:.3f})"
        for name, kind in (
            ("one prompt", "one"), ("three, fixed", "fixed"), ("three, sample", "sample"),
            ("of these three alone, fixed", "own"),
        )
    )  # fmt: skip


def _pair(n: int, shift: float, own: float, effect: float, trials: int) -> str:
    found = sim.pairs_by_prompts(n, shift, own, effect, trials, SEED)
    return "; ".join(
        f"{name} {percent(found[kind][0])} ({found[kind][1]:.3f}), rejects {percent(found[kind][2])}"
        for name, kind in (("one prompt", "one"), ("three, fixed", "fixed"), ("sample", "sample"))
    )


SECTIONS: dict[str, list[Row]] = {
    "The judge's prompts: share of right answers, coverage (and width)": [
        Row(
            f"a prompt's standard deviation is {points} points",
            f"{n:,} topics",
            "three prompts, sample: at least 93 %; fixed: so of these three",
            "one prompt",
            lambda trials, n=n, points=points: _shares(n, points / 100, trials),  # type: ignore[misc]
            500,
        )
        for points, n in ((3.4, 120), (3.4, 500), (3.4, 2000), (0, 120), (0, 500))
    ],
    "The judge's prompts: difference of two systems, coverage (and width)": [
        Row(
            f"prompts move both by 3.4 points and each by another {own}, {what}",
            f"{n:,} topics",
            "three prompts, sample: at least 93 %, rejects at most 5 % of equal systems",
            "one prompt",
            lambda trials, n=n, own=own, effect=effect: _pair(n, 0.034, own / 100, effect, trials),  # type: ignore[misc]
            trials,
        )
        for own, n, effect, what, trials in (
            (0, 120, 0.0, "equal systems", 100), (3, 500, 0.0, "equal systems", 60),
            (3, 500, 0.1, "10 points apart", 100),
        )
    ],
}  # fmt: skip
