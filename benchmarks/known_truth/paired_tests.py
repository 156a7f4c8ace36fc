"""Paired tests of two systems."""

from __future__ import annotations

import simulations.paired_tests as sim
from known_truth.rows import SEED, Row, percent

SECTIONS: dict[str, list[Row]] = {
    "Sign-flip test: its null is exchangeability": [
        Row(
            f"{what}: rejected at 5 %",
            f"{n} topics",
            wanted,
            "the same; the null was called a mean of 0",
            lambda trials, n=n, skewed=skewed: percent(  # type: ignore[misc]
                sim.sign_flip_rejections(skewed, n, trials, SEED)
            ),
        )
        for what, skewed, wanted in (
            ("symmetric differences", False, "5 %"),
            ("skewed differences of mean 0", True, "not held: not exchangeable"),
        )
        for n in (30, 120)
    ],
}
