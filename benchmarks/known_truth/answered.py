"""Few answered topics: drawn by risk, and the means of answer measures."""

from __future__ import annotations

import simulations.sampling as sim
from known_truth.rows import SEED, Row, percent
from known_truth.sampling import KINDS, answered


def _measured(kind: str, n_topics: int, n: int, design: str, lacking: float, trials: int) -> str:
    return "; ".join(
        f"{target}: {percent(found['coverage'])}, difference {percent(found['difference'])}"
        + f", equal systems called different {percent(found['rejected'])}" * (target == "population")
        + f", width {found['width']:.3f} (answered topics alone {found['plain']:.3f})"
        for target, found in sim.measured_sample(kind, n_topics, n, trials, SEED, design, lacking).items()
    )


SECTIONS: dict[str, list[Row]] = {
    "Few answered topics, drawn by risk: class shares and paired differences": [
        Row(
            f"{KINDS[kind]}: coverage of the classes and of the difference of two equal systems",
            f"{n} of {n_topics:,} topics, by strata of P(right)",
            "93 to 97 %; sums of 1",
            "topics were drawn at random",
            lambda trials, args=(kind, n_topics, n): answered(*args, trials, "neyman"),  # type: ignore[misc]
            100,
        )
        for kind, n_topics, n in (("useful", 500, 100), ("useful", 500, 200), ("useless", 500, 100), ("rare", 500, 200))
    ],
    "Few answered topics: means of answer measures, by a regression on the IR score": [
        Row(
            f"{what}: coverage of the mean and of the difference of two equal systems",
            f"F1 of {n} of {n_topics:,} topics, {'drawn by risk' if design == 'neyman' else 'drawn at random'}",
            "93 to 97 %; narrower than the answered topics alone where the score says something",
            "means of the answered topics",
            lambda trials, args=(kind, n_topics, n, design, lacking): _measured(*args, trials),  # type: ignore[misc]
            300,
        )
        for what, kind, n_topics, n, design, lacking in (
            *(("the IR score says something", "useful", 500, n, "uniform", 0.0) for n in (50, 100, 200)),
            ("the IR score says something", "useful", 7404, 200, "uniform", 0.0),
            ("the IR score says something", "useful", 500, 100, "neyman", 0.0),
            ("the same, 10 % of the answers without a value", "useful", 500, 100, "uniform", 0.1),
            ("the IR score says nothing", "useless", 500, 50, "uniform", 0.0),
            ("mean 0.02", "rare", 500, 100, "uniform", 0.0),
        )
    ],
}
