"""Which measure foresees the answers: intervals of AUC and rank correlation, and the paired test."""

from __future__ import annotations

import simulations.foresight as sim
from known_truth.rows import SEED, Row, percent

_NO_SUCH = "no such number"
_TRIALS = 150


def _claimed(useful: int, measures: int, topics: int, systems: int, base: float, trials: int) -> str:
    found = sim.foremost(useful, measures, topics, systems, trials, SEED, base)
    if not useful:
        return percent(found["claimed"])
    return f"{percent(found['claimed'])}; {percent(found['held'])}, {found['size']:.1f} measures"


def _gained(kind: str, topics: int, systems: int, base: float, trials: int) -> str:
    found = sim.gains(kind, topics, systems, base, trials, SEED)
    return f"{percent(found['held'])}; {percent(found['claimed'])}; {100 * found['off']:+.1f} points"


SECTIONS: dict[str, list[Row]] = {
    "Foresight: which measure foresees best": [
        *(
            Row(
                f"{measures} useless measures: one is said to foresee best",
                f"{topics} topics, {systems} system{'s' * (systems > 1)}{', one in ten is right' if base else ''}",
                "about 5 %",
                before,
                lambda n, args=(0, measures, topics, systems, base): _claimed(*args, n),  # type: ignore[misc]
                trials,
            )
            for measures, topics, systems, base, before, trials in (
                (1, 120, 3, 0, "2.7 %", 300),
                (5, 120, 3, 0, "11.7 %", 300),
                (20, 120, 3, 0, "43.3 %", 300),
                (20, 40, 2, 0, "42.7 %", 300),
                (20, 30, 1, 0, _NO_SUCH, 300),
                (20, 500, 1, 0, _NO_SUCH, 200),
                (20, 30, 1, -2.8, _NO_SUCH, 200),
                (20, 120, 1, -2.8, _NO_SUCH, 200),
            )
        ),
        *(
            Row(
                f"{useful} of {measures} measures foresee equally well, the others nothing: said to foresee best; "
                "the set of the best holds a given one, and its size",
                f"{topics} topics, {systems} system{'s' * (systems > 1)}{', one in ten is right' if base else ''}",
                "often; at least 95 %",
                before,
                lambda n, args=(useful, measures, topics, systems, base): _claimed(*args, n),  # type: ignore[misc]
                trials,
            )
            for useful, measures, topics, systems, base, before, trials in (
                (1, 20, 120, 3, 0, _NO_SUCH, 100),
                (2, 20, 120, 3, 0, _NO_SUCH, 100),
                (5, 20, 40, 3, 0, _NO_SUCH, 200),
                (2, 20, 30, 1, 0, _NO_SUCH, 200),
                (2, 20, 120, 1, -2.8, _NO_SUCH, 200),
            )
        ),
    ],
    "Foresight: AUC and rank correlation of a measure": [
        *(
            Row(
                f"AUC and rank correlation of a measure hold the true value: {name}",
                statistic,
                "about 95 %",
                _NO_SUCH,
                lambda trials, name=name, statistic=statistic: percent(  # type: ignore[misc]
                    sim.coverage(name, trials, SEED)[statistic]
                ),
                _TRIALS,
            )
            for name in sim.POPULATIONS
            for statistic in sim.STATISTICS
        ),
        *(
            Row(
                f"two measures that foresee equally well: told apart at 5 %, {name}",
                statistic,
                "about 5 %",
                _NO_SUCH,
                lambda trials, name=name, statistic=statistic: percent(  # type: ignore[misc]
                    sim.told_apart(name, trials, SEED)[statistic]
                ),
                _TRIALS,
            )
            for name in sim.POPULATIONS
            for statistic in sim.STATISTICS
        ),
    ],
    "Foresight: what a measure adds to the IR score": [
        Row(
            f"the gain in AUC holds the true one; is said to be above 0; is off by: a measure that says {kind}",
            f"{topics} topics, {systems} system{'s' * (systems > 1)}{', one in ten is right' if base else ''}",
            f"about 95 %; {'at most 2.5 %' if kind in sim.GAINS[:2] else 'often'}; about 0",
            _NO_SUCH,
            lambda n, args=(kind, topics, systems, base): _gained(*args, n),  # type: ignore[misc]
            _TRIALS,
        )
        for topics, systems, base in ((75, 3, 0), (300, 3, 0), (40, 1, 0), (120, 3, -2.8))
        for kind in sim.GAINS
    ],
}
