"""Shares of yes by a trained judge and labels of a few: order of systems, and intervals."""

from __future__ import annotations

from functools import cache

import plugins.training.ares_simulation as sim
from known_truth.rows import SEED, Row, percent

_TOPICS = 1000


@cache
def _found(judge: str, n_labels: int, trials: int) -> sim.Found:
    return sim.simulated(sim.JUDGES[judge], n_labels, _TOPICS, trials, SEED)


def _coverage(judge: str, n_labels: int, trials: int) -> str:
    of = _found(judge, n_labels, trials)
    return (
        f"{percent(of.coverage)}; labels alone {percent(of.coverage_labels)}; judge alone "
        f"{percent(of.coverage_judge)}; one system's labels for all {percent(of.coverage_shared)}"
    )


def _order(judge: str, n_labels: int, trials: int) -> str:
    of = _found(judge, n_labels, trials)
    return (
        f"{of.tau:.2f}; labels alone {of.tau_labels:.2f}; judge alone {of.tau_judge:.2f}; interval "
        f"{of.width:.2f} as wide as that of the labels"
    )


_CASES = [(judge, n) for judge in sim.JUDGES for n in (150, 300)]

SECTIONS: dict[str, list[Row]] = {
    "Trained judges with labels of a few answers (ARES): nine systems 2.5 points apart": [
        *(
            Row(
                f"coverage of 95 % intervals (PPI++), judge: {judge}",
                f"{n} labels a system, {_TOPICS:,} topics",
                "about 95 %",
                "no such number",
                lambda trials, judge=judge, n=n: _coverage(judge, n, trials),  # type: ignore[misc]
                100,
            )
            for judge, n in _CASES
        ),
        *(
            Row(
                f"Kendall's tau of the systems' order, judge: {judge}",
                f"{n} labels a system, {_TOPICS:,} topics",
                "above that of the labels alone",
                "no such number",
                lambda trials, judge=judge, n=n: _order(judge, n, trials),  # type: ignore[misc]
                100,
            )
            for judge, n in _CASES
        ),
    ],
}
