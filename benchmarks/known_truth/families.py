"""Paired tests of a report over several measures, corrected by measure and all together."""

from __future__ import annotations

import simulations.families as sim
from known_truth.rows import SEED, Row, percent

_NULL, _REAL = 0.0, 0.05
_TRIALS = 400


def _row(measures: int, gain: float) -> Row:
    def both(trials: int, of: int) -> str:
        found = sim.found(measures, gain, trials, SEED)
        return f"{percent(found['measure'][of])} by measure, {percent(found['all'][of])} all together"

    who = f"2 systems, {measures} measures, {sim.TOPICS} topics"
    if not gain:
        return Row(
            "systems that are alike: called different in some measure at 5 %",
            who,
            "all together: at most 5 %",
            "as by measure",
            lambda trials: both(trials, 0),
            _TRIALS,
        )
    return Row(
        "one IR score is 0.05 higher: found at 5 %; another difference is said",
        who,
        "often; all together: at most 5 %",
        "as by measure",
        lambda trials: f"{both(trials, 1)}; {both(trials, 0)}",
        60,
    )


SECTIONS: dict[str, list[Row]] = {
    "Families of tests: several measures in one report": [
        _row(measures, gain) for gain in (_NULL, _REAL) for measures in (3, 8)
    ],
}
