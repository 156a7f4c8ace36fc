"""Zones with a guarantee."""

from __future__ import annotations

import simulations.zones as sim
from known_truth.rows import SEED, Row, percent


def _told(risk: sim.Risk, n: int, rows: int, missing: float, trials: int) -> str:
    broken, found, share = sim.broken_promises(risk, n, rows, trials, SEED, missing)
    return f"{percent(broken)}; a zone in {percent(found)}, with {percent(share)} of the answers on average"


SECTIONS: dict[str, list[Row]] = {
    "Zones: over 10 % not right above the threshold, on the whole population": [
        Row(
            what,
            f"{n} topics, {rows}",
            wanted,
            "no zones",
            lambda trials, risk=risk, n=n, most=most, missing=missing: _told(  # type: ignore[misc]
                risk, n, most, missing, trials
            ),
        )
        for what, risk, missing, wanted in (
            ("a useless score, 10.01 % not right", sim.useless, 0.0, "at most 5 %"),
            ("a steep score", sim.steep, 0.0, "at most 5 %"),
            ("5 % not right above 0.5, 40 % below", sim.edge, 0.0, "at most 5 %"),
            ("a steep score, 5 % of the verdicts missing", sim.steep, 0.05, "at most 5 %"),
            (
                "the highest scores are worse (not as assumed)",
                sim.rising,
                0.0,
                "no promise: the assumption fails",
            ),
        )
        for n, rows, most in (
            (60, "1 answer", 1),
            (120, "1 answer", 1),
            (400, "1 answer", 1),
            (120, "1 to 5 answers, half of their luck shared", 5),
        )
        if risk is not sim.rising or n == 60
    ],
}
