"""Intervals of CRAG's score of the judge classes."""

from __future__ import annotations

import simulations.truthfulness as sim
from known_truth.rows import FULL, SEED, Row, percent

_N = 60
_NEARLY_ALL = "97 % right, 3 % wrong"

SECTIONS: dict[str, list[Row]] = {
    "Truthfulness: coverage of 95 % intervals": [
        *(
            Row(
                f"truthfulness: {name}",
                f"n = {_N}",
                "about 95 %",
                "no such number",
                lambda trials, shares=shares: percent(sim.coverage(shares, _N, trials, SEED)),  # type: ignore[misc]
                FULL,
            )
            for name, shares in sim.POPULATIONS.items()
        ),
        Row(
            f"for comparison, a bootstrap: {_NEARLY_ALL}",
            f"n = {_N}",
            "about 95 %",
            "not in use",
            lambda trials: percent(sim.coverage_of_bootstrap(sim.POPULATIONS[_NEARLY_ALL], _N, trials, SEED)),
            500,
        ),
    ],
}
