"""What an ablation says of each option of a grid."""

from __future__ import annotations

import simulations.ablation as sim
from known_truth.rows import SEED, Row, percent

_NO_SUCH = "no such number"

SECTIONS: dict[str, list[Row]] = {
    "Ablation: intervals of options, averaged over the settings of a grid": [
        *(
            Row(
                f"{what}: interval holds its true effect of {sim.TRUE[option]:.2f}",
                f"{measure}, 3 retrievers, {n} topics{', 40 % of them judged' if judged < 1 else ''}",
                "95 %",
                _NO_SUCH,
                lambda trials, measure=measure, option=option, n=n, judged=judged: percent(  # type: ignore[misc]
                    sim.coverage(measure, option, n, trials, SEED, judged)
                ),
                600,
            )
            for what, option, measure, n, judged in (
                ("an option that helps", "cross", "ir_score", 120, 1.0),
                ("an option that helps", "cross", "correct", 120, 1.0),
                ("an option that helps", "cross", "correct", 500, 1.0),
                ("one that helps here and harms there", "llm", "ir_score", 120, 1.0),
                ("one that helps here and harms there", "llm", "correct", 120, 1.0),
                ("one that helps here and harms there", "llm", "correct", 240, 0.4),
            )
        ),
    ],
}
