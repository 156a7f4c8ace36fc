"""Which measure foresees the answers: intervals of AUC and rank correlation, and the paired test."""

from __future__ import annotations

import simulations.foresight as sim
from known_truth.rows import SEED, Row, percent

_NO_SUCH = "no such number"
_TRIALS = 300

SECTIONS: dict[str, list[Row]] = {
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
}
