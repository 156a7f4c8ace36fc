"""Averages over slices, and differences found in many slices."""

from __future__ import annotations

import simulations.slices as sim
from known_truth.rows import FULL, SEED, Row, percent

_NO_SUCH = "no such number"


def _sizes(sizes: list[int]) -> str:
    return " + ".join(map(str, sizes)) if len(sizes) < 5 else f"{len(sizes)} x {sizes[0]}"


SECTIONS: dict[str, list[Row]] = {
    "Slices: average over slices, and paired tests of many": [
        *(
            Row(
                f"average over slices holds the true one: {population}",
                f"{measure}, {_sizes([n for n, _, _ in slices.values()])} topics",
                "about 95 %",
                _NO_SUCH,
                lambda trials, population=population, measure=measure: percent(  # type: ignore[misc]
                    sim.coverage(population, trials, SEED)[measure]
                ),
                FULL,
            )
            for population, slices in sim.POPULATIONS.items()
            for measure in sim.MEASURES
        ),
        Row(
            "two systems that are alike: called different in some slice at 5 %",
            "20 slices of 15 topics, Holm",
            "at most 5 %",
            _NO_SUCH,
            lambda trials: percent(sim.differences_found(20, trials, SEED)),
            200,
        ),
    ],
}
