"""The thresholds h and k."""

from __future__ import annotations

import simulations.thresholds as sim
from known_truth.rows import FULL, SEED, Row, percent

SECTIONS: dict[str, list[Row]] = {
    "Thresholds: is one useful, and which are not worse": [
        *(
            Row(
                what + ": called useful",
                f"{n} topics",
                wanted,
                f"{before}: beats the constant guess",
                lambda trials, n=n, slope=slope, share=share: percent(  # type: ignore[misc]
                    sim.useful_thresholds(n, slope, share, trials, SEED)[0]
                ),
                trials,
            )
            for what, n, slope, share, wanted, before, trials in (
                ("a useless score, half are right", 30, 0.0, 0.5, "at most 5 %", "75.8 %", FULL),
                ("a useless score, half are right", 120, 0.0, 0.5, "at most 5 %", "87.2 %", FULL),
                ("a useless score, 70 % are right", 120, 0.0, 0.7, "at most 5 %", "49.9 %", FULL),
                ("a score that gains 24 points", 120, 6.0, 0.5, "nearly always", "100.0 %", 500),
            )
        ),
        *(
            Row(
                f"systems right in 20, 50 and 80 %, a score that {what}: called useful",
                f"{n} topics, three answers each",
                wanted,
                before,
                lambda trials, n=n, slope=slope: percent(sim.useful_over_systems(n, slope, trials, SEED)),  # type: ignore[misc]
                500,
            )
            for what, n, slope, wanted, before in (
                ("is useless within each", 40, 0.0, "at most 5 %", "78.4 %"),
                ("is useless within each", 120, 0.0, "at most 5 %", "100.0 %"),
                ("is useful within each", 120, 20.0, "often", "99.8 %"),
            )
        ),
        *(
            Row(
                f"the best threshold is among those not rejected; logistic of slope {slope:g}",
                f"{n} topics, {rows} row(s) each",
                "92 to 98 %",
                "no such set",
                lambda trials, n=n, rows=rows, slope=slope: "{}; between its ends {}".format(  # type: ignore[misc]
                    *map(percent, sim.threshold_coverage(n, rows, slope, trials, SEED))
                ),
                500,
            )
            for n, rows, slope in ((60, 1, 6.0), (400, 1, 6.0), (400, 1, 20.0), (120, 5, 6.0))
        ),
    ],
}
