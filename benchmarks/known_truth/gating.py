"""Gates against a baseline: verdicts without a difference, and with one."""

from __future__ import annotations

import simulations.gating as sim
from known_truth.rows import SEED, Row, percent

_NONE = "no such number"


def _planned(shares: bool, difference: float, tolerance: float, verdict: str, trials: int) -> str:
    n, found = sim.power(shares, difference, tolerance, verdict, trials, SEED)
    return f"{percent(found)} on {n:,} topics"


SECTIONS: dict[str, list[Row]] = {
    "Gates: pairs of sweeps without a difference": [
        *(
            Row(
                "a gate has a regression (12 comparisons)",
                f"3 systems x 4 metrics, 80 topics, tolerance {tolerance:g}",
                "at most 5 %",
                _NONE,
                lambda trials, tolerance=tolerance: percent(sim.gates(80, tolerance, trials, SEED)[0]),  # type: ignore[misc]
                trials=trials,
            )
            for tolerance, trials in ((0.0, 1000), (0.02, 200))
        ),
        *(
            Row(
                "one share is called regressed, tolerance 0",
                f"{n} topics, rate 0.3",
                "at most 5 %",
                _NONE,
                lambda trials, n=n: percent(sim.few_topics_regressed(n, 0.3, trials, SEED)),  # type: ignore[misc]
                trials=1000,
            )
            for n in (5, 20, 50)
        ),
        *(
            Row(
                "a score that is 0 on 2 % of the topics passes, tolerance 0.02",
                f"{n} topics",
                "5 %",
                _NONE,
                lambda trials, n=n: percent(sim.wrongly_passed(n, 0.02, 0.02, trials, SEED)),  # type: ignore[misc]
                trials=1000,
            )
            for n in (40, 80, 200)
        ),
    ],
    "Gates: how often a verdict comes on the topics that were planned for it": [
        Row(
            f"{what}: {verdict}",
            f"true difference {difference:g}, tolerance {tolerance:g}",
            "80 %",
            _NONE,
            lambda trials, given=(shares, difference, tolerance, verdict): _planned(*given, trials),  # type: ignore[misc]
            trials=400,
        )
        for what, shares in (("score", False), ("share", True))
        for difference, tolerance, verdict in (
            (-0.08, 0.02, "regressed"),
            (-0.05, 0.02, "regressed"),
            (-0.1, 0.0, "regressed"),
            (0.0, 0.05, "pass"),
        )
    ],
}
