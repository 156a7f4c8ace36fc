"""The set of best systems, and the optimism of the top score."""

from __future__ import annotations

import simulations.best as sim
from known_truth.rows import SEED, Row, percent

_LEAD, _SPREAD = [0.05] + [0.0] * 14, [0.02, 0.01, 0.0, 0.0, -0.1]


def _size(trials: int) -> str:
    found = sim.best_sets(_LEAD, 120, trials, SEED, before=True)
    return (
        f"{found.size:.1f} (all equally best at once: {found.size_all:.1f}; Holm's marks in these trials: "
        f"{found.holm_size:.1f}); holds it {percent(found.holds)}"
    )


def _holds(means: list[float], n: int, right: bool, trials: int) -> str:
    found = sim.best_sets(means, n, trials, SEED, right)
    return f"{percent(found.holds)}; {percent(found.holds_all)}"


def _optimism(means: list[float], trials: int) -> str:
    truth, estimate = sim.optimism(means, 120, trials, SEED)
    return f"true {truth:.4f}, estimated {estimate:.4f}"


SECTIONS: dict[str, list[Row]] = {
    "Which systems are best": [
        Row(
            "systems marked, of 15 where one leads by 0.05",
            "120 topics, deviation 0.25, correlation 0.5",
            "few, and the best among them in 95 %",
            "14.0",
            _size,
            60,
        ),
        *(
            Row(
                f"{what}: the set holds one given best system; the wider one all of them at once",
                f"{n} topics",
                "at least 95 %",
                "no such set",
                lambda trials, means=means, n=n, right=right: _holds(means, n, right, trials),  # type: ignore[misc]
                400,
            )
            for what, means, n, right in (
                ("scores, leads of 0.01 to 0.12", _SPREAD, 30, False),
                ("scores, five equal", [0.0] * 5, 120, False),
                ("right answers, five equal at 0.4", [0.4] * 5, 120, True),
                ("right answers, five equal at 0.95", [0.95] * 5, 30, True),
            )
        ),
        *(
            Row(
                f"the top score less its system's true mean: {what}",
                "120 topics, deviation 0.25, correlation 0.5",
                wanted,
                "not told",
                lambda trials, means=means: _optimism(means, trials),  # type: ignore[misc]
                4000,
            )
            for what, means, wanted in (
                ("two equal systems", [0.0] * 2, "about right"),
                ("five equal systems", [0.0] * 5, "about right"),
                ("one of five leads by 0.05", [0.05, 0.0, 0.0, 0.0, 0.0], "not under the true one"),
            )
        ),
    ],
}
