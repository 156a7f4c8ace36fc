"""Averages over slices, and differences found in many slices."""

from __future__ import annotations

import simulations.slices as sim
from known_truth.rows import SEED, Row, percent

_NO_SUCH = "no such number"

SECTIONS: dict[str, list[Row]] = {
    "Slices: average over slices, and paired tests of many": [
        *(
            Row(
                f"average over slices holds the true one: {what}",
                f"{measure}, {sizes} topics",
                "about 95 %",
                _NO_SUCH,
                lambda trials, slices=slices, measure=measure: percent(  # type: ignore[misc]
                    sim.coverage(slices, measure, trials, SEED)
                ),
                500,
            )
            for what, slices in (
                ("slices of one size", sim.EVEN),
                ("slices of different sizes", sim.UNEVEN),
                ("shares of 0.02 to 0.99", sim.EXTREME),
                ("weights 1, 3 and 6", sim.WEIGHTED),
                ("a slice of one topic", sim.SINGLE),
            )
            for sizes in [" + ".join(str(n) for n, _, _ in slices.values())]
            for measure in ("correct_share", "ir_score")
        ),
        Row(
            "two systems that are alike: called different in some slice at 5 %",
            "20 slices of 15 topics, Holm",
            "at most 5 %",
            _NO_SUCH,
            lambda trials: percent(sim.differences_found(20, trials, SEED)),
            200,
        ),
    ],
}
