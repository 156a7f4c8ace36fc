"""The funnel: changes from one step to the next, and where failures come from."""

from __future__ import annotations

import simulations.funnel as sim
from known_truth.rows import SEED, Row, percent

SECTIONS: dict[str, list[Row]] = {
    "Funnel: the change from one step to the next": [
        Row(
            f"change of a step, {name}: interval holds the true change",
            f"{n} topics",
            "95 % or more",
            "no such number",
            lambda trials, n=n, name=name: percent(  # type: ignore[misc]
                sim.change_coverage(name, n, trials, SEED)
            ),
            trials=300,
        )
        for name in sim.CHANGES
        for n in (30, 500)
    ],
    "Funnel: where failures come from, over five systems": [
        Row(
            f"share of failures from one origin, {name}: interval holds the true share",
            f"{n} topics",
            "about 95 %",
            "no such number",
            lambda trials, n=n, name=name: percent(  # type: ignore[misc]
                sim.origin_coverage(name, n, trials, SEED)
            ),
            trials=300,
        )
        for name in sim.ORIGINS
        for n in (30, 100)
    ],
}
