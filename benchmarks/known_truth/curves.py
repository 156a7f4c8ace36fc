"""Curves over ten budgets."""

from __future__ import annotations

import simulations.curves as sim
from known_truth.rows import SEED, Row, percent


def _claims(n: int, right: bool, trials: int) -> str:
    wrong, claimed = sim.smallest_is_within(n, trials, SEED, right)
    return f"{percent(wrong)}; a budget under the largest is found in {percent(claimed)}"


def _share(of: tuple[float, float], which: int) -> str:
    return percent(of[which])


SECTIONS: dict[str, list[Row]] = {
    "Curves over ten budgets": [
        *(
            Row(
                f"a band holds the whole curve, which ends at {end}",
                f"{n} topics",
                "about 95 %",
                f"{before} of ten pointwise intervals together (500 trials)",
                lambda trials, n=n, place=place: _share(  # type: ignore[misc]
                    sim.band_coverage(n, place, trials, SEED), 1
                ),
                500,
            )
            for end, place, n, before in (
                ("0.71", 400, 120, "81.8 %"),
                ("0.71", 400, 30, "79.0 %"),
                ("0.97", 30, 30, "82.8 %"),
                ("0.99", 10, 120, "85.2 %"),
            )
        ),
        Row(
            "two equal systems called different at 5 % where they differ most",
            "120 topics",
            "at most 5 %",
            "12.5 % (200 trials)",
            lambda trials: _share(sim.false_alarms(120, trials, SEED), 1),
            500,
        ),
        *(
            Row(
                f"smallest N within the margin, {what}: one that costs the margin is claimed",
                f"{n} topics",
                "at most 5 %",
                "not told",
                lambda trials, n=n, right=right: _claims(n, right, trials),  # type: ignore[misc]
                200,
            )
            for what, right, n in (
                ("IR score", False, 120),
                ("IR score", False, 1000),
                ("right answers, not rising", True, 400),
            )
        ),
    ],
}
