"""The hallucination share."""

from __future__ import annotations

import numpy as np

from known_truth.rows import SEED, Row, percent
from ragauge.estimate import bounded_mean
from simulations.paired_tests import hallucination_rejections
from simulations.shares import binomial_coverage

SECTIONS: dict[str, list[Row]] = {
    "Hallucination share: interval and paired test": [
        Row(
            "share of 0.03, a row a topic: coverage",
            "n = 120, enumerated",
            "about 95 %",
            "no interval",
            lambda _: percent(float(binomial_coverage(bounded_mean, 120, np.array([0.03]))[0])),
            0,
        ),
        *(
            Row(
                f"{rates[0]} against {rates[1]}: called different at 5 %",
                "120 topics, half of them alike",
                wanted,
                "no test",
                lambda trials, rates=rates: percent(  # type: ignore[misc]
                    hallucination_rejections(rates, 0.5, 120, trials, SEED)
                ),
            )
            for rates, wanted in (((0.2, 0.2), "at most 5 %"), ((0.35, 0.15), "nearly always"))
        ),
    ],
}
