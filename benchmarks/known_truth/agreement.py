"""The judge beside people."""

from __future__ import annotations

import simulations.agreement as sim
from known_truth.rows import SEED, Row, percent

SECTIONS: dict[str, list[Row]] = {
    "Judge beside people: coverage of 95 % intervals": [
        Row(
            "Cohen's kappa, the judge errs more on half of the topics",
            f"{n} topics, {rows} answers each",
            "about 95 %",
            "the same; not shown",
            lambda trials, n=n, rows=rows: percent(  # type: ignore[misc]
                sim.kappa_coverage(n, rows, trials, SEED)
            ),
            1000,
        )
        for n, rows in ((30, 1), (120, 1), (120, 5))
    ],
}
