"""Intervals of shares and mean scores."""

from __future__ import annotations

import numpy as np

import simulations.shares as sim
from known_truth.rows import SEED, Row, percent
from ragauge.estimate import bounded_mean
from ragauge.estimate.intervals import paired_mean, paired_share_interval


def _binomial(n: int) -> str:
    covered = sim.binomial_coverage(bounded_mean, n)
    return f"mean {percent(float(covered.mean()))}, least {percent(float(covered.min()))}"


_CLUSTERED = ((0.01, 0.3), (0.05, 0.0), (0.05, 0.3), (0.3, 0.3), (0.3, 0.8))  # share and correlation
_DIFFERENCES = ((0.02, 0.02), (0.1, 0.05), (0.3, 0.1), (0.05, 0.0))  # won and lost
# A percentile bootstrap at n = 30, 120, 500.
_RARE_BEFORE = (
    ("26.0 %", "69.9 %", "95.5 %"), ("45.2 %", "90.8 %", "96.5 %"), ("58.7 %", "86.8 %", "95.5 %"),
    ("95.0 %", "95.4 %", "95.5 %"), ("78.2 %", "93.5 %", "95.3 %"),
)  # fmt: skip
_DENSE_BEFORE = (
    ("94.5 %", "95.0 %", "94.3 %"), ("92.2 %", "95.0 %", "93.8 %"), ("67.0 %", "91.5 %", "94.0 %"),
)  # fmt: skip
_SCORES_BEFORE = ("66.5 %", "40.5 %", "24.5 %", "91.8 %", "92.1 %", "92.2 %", "92.0 %")

SECTIONS: dict[str, list[Row]] = {
    "Intervals of shares and mean scores: coverage of 95 % intervals": [
        Row(
            "share of 0.01, a row a topic",
            "n = 30, enumerated",
            "about 95 %",
            "26.0 %",
            lambda _: percent(float(sim.binomial_coverage(bounded_mean, 30, np.array([0.01]))[0])),
            0,
        ),
        *(
            Row(
                "shares of 0.005 to 0.995, a row a topic",
                f"n = {n}, enumerated",
                "mean 94 to 97 %, least over 86 %",
                before,
                lambda _, n=n: _binomial(n),  # type: ignore[misc]
                0,
            )
            for n, before in ((30, "mean 88.8 %, least 14.0 %"), (120, "mean 93.0 %, least 44.9 %"))
        ),
        Row(
            "shares of 0.01 to 0.3, five rows a topic, correlation 0 to 0.8",
            "40 topics",
            "about 95 %",
            "67.4 to 94.6 % (500 trials)",
            lambda trials: percent(
                *(sim.clustered_coverage(bounded_mean, share, rho, 40, 5, trials, SEED) for share, rho in _CLUSTERED)
            ),
        ),
        *(
            Row(
                "mean score: " + name,
                "n = 30",
                "about 95 %",
                before,
                lambda trials, name=name: percent(  # type: ignore[misc]
                    sim.score_coverage(bounded_mean, name, 30, trials, SEED)
                ),
            )
            for name, before in zip(sim.SCORES, _SCORES_BEFORE, strict=True)
        ),
        *(
            Row(
                f"for comparison, {name}: mean score, 95 to 99 % are 1",
                "n = 30",
                "about 95 %",
                "not in use",
                lambda trials, other=other: percent(  # type: ignore[misc]
                    *(sim.score_coverage(other, case, 30, trials, SEED) for case in list(sim.SCORES)[:3])
                ),
                500,
            )
            for name, other in (("bootstrap-t", sim.bootstrap_t), ("logit-t", sim.logit_t))
        ),
        *(
            Row(
                f"paired difference of scores, {name}",
                f"n = {n}, enumerated",
                "at least 90 %",
                before,
                lambda _, name=name, n=n: percent(sim.rare_coverage(paired_mean, name, n)),  # type: ignore[misc]
                0,
            )
            for name, of_n in zip(sim.RARE, _RARE_BEFORE, strict=True)
            for n, before in zip((30, 120, 500), of_n, strict=True)
        ),
        *(
            Row(
                f"paired difference of scores, {name}",
                f"n = {n}",
                "about 95 %",
                before,
                lambda trials, name=name, n=n: percent(  # type: ignore[misc]
                    sim.dense_coverage(paired_mean, name, n, trials, SEED)
                ),
            )
            for name, of_n in zip(sim.DENSE, _DENSE_BEFORE, strict=True)
            for n, before in zip((30, 120, 500), of_n, strict=True)
        ),
        Row(
            "mean over five systems: bootstrap over topics; over rows as if they were independent",
            "80 topics, whose difficulty is half of the variance",
            "about 95 % over topics",
            "the same",
            lambda trials: "{}; {}".format(*map(percent, sim.mean_over_systems(trials, SEED))),
            500,
        ),
        Row(
            "paired difference of shares, 2 to 40 % of the topics differ",
            "n = 30, enumerated",
            "about 95 %",
            "77.0 to 97.5 %",
            lambda _: percent(*(sim.difference_coverage(paired_share_interval, *cell, 30) for cell in _DIFFERENCES)),
            0,
        ),
    ],
}
