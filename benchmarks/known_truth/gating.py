"""Gates against a baseline: verdicts without a difference, and with one."""

from __future__ import annotations

import plugins.gate.gating_simulation as sim
from known_truth.rows import SEED, Row, percent

_NONE = "no such number"


def _planned(shares: bool, difference: float, tolerance: float, verdict: str, trials: int) -> str:
    n, found = sim.power(shares, difference, tolerance, verdict, trials, SEED)
    return f"{percent(found)} on {n:,} topics"


# Rate and topics, and what came of them before (a t test, with half a topic at each end where few differ).
_LOST = (
    (0.01, 100, "0.0 %"), (0.01, 200, "11.3 %"), (0.01, 500, "11.1 %"), (0.02, 40, "0.0 %"),
    (0.02, 80, "0.0 %"), (0.02, 100, "11.7 %"), (0.02, 200, "8.6 %"), (0.02, 500, "6.6 %"),
    (0.05, 40, "12.3 %"), (0.05, 100, "11.7 %"), (0.05, 200, "7.3 %"), (0.05, 500, "7.5 %"),
)  # fmt: skip
# Tail and topics, and what came of them before (Hall's correction with 1 + 8.5 / n, and no topic added).
_TAILS = (
    ("exponential", 20, "5.1 %"), ("exponential", 50, "5.9 %"), ("exponential", 200, "5.8 %"),
    ("lognormal", 20, "9.7 %"), ("lognormal", 50, "8.5 %"), ("lognormal", 200, "6.8 %"),
    ("lognormal, sigma 1.5", 20, "11.8 %"), ("lognormal, sigma 1.5", 50, "12.6 %"),
    ("lognormal, sigma 1.5", 200, "10.0 %"), ("normal", 50, "4.6 %"),
)  # fmt: skip

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
                f"a score that is 0 on {100 * rate:.0f} % of the topics passes, tolerance {rate:g}",
                f"{n} topics",
                "at most 5 %",
                before,
                lambda trials, n=n, rate=rate: percent(sim.wrongly_passed(n, rate, rate, trials, SEED)),  # type: ignore[misc]
                trials=1000,
            )
            for rate, n, before in _LOST
        ),
        *(
            Row(
                f"a score worse by its tolerance of 0.05 passes, losses {tail}",
                f"{n} topics",
                "at most 7 %",
                before,
                lambda trials, tail=tail, n=n: percent(sim.skewed_passed(tail, n, 0.05, trials, SEED)),  # type: ignore[misc]
            )
            for tail, n, before in _TAILS
        ),
        *(
            Row(
                f"a score worse by its tolerance of 0.05 passes, losses {tail}",
                f"{n} topics",
                "not held: a sample may show none",
                "the same",
                lambda trials, tail=tail, n=n: percent(sim.skewed_passed(tail, n, 0.05, trials, SEED)),  # type: ignore[misc]
            )
            for tail, n in (
                ("one in fifty by 1", 100),
                ("one in fifty by 1", 200),
                ("one in ten by 1", 20),
                ("one in ten by 1", 50),
            )
        ),
        *(
            Row(
                f"a score that is equal is called regressed, tolerance 0, gains {tail}",
                f"{n} topics",
                "at most 7 %",
                before,
                lambda trials, tail=tail, n=n: percent(sim.skewed_regressed(tail, n, trials, SEED)),  # type: ignore[misc]
            )
            for tail, n, before in _TAILS
            if tail == "lognormal"
        ),
        *(
            Row(
                "a score worse by its tolerance of 0.05 passes: at once, or on the topics that the gate then asks for",
                f"{n} topics, normal differences",
                "at most 6 %",
                before,
                lambda trials, n=n: percent(sim.passed_in_two_looks(n, 0.05, trials, SEED)),  # type: ignore[misc]
            )
            for n, before in ((30, "9.9 % (at alpha both times)"), (100, "9.9 % (at alpha both times)"))
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
