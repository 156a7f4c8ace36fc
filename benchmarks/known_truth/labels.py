"""Which answers people label, and shares by labels of another period."""

from __future__ import annotations

from functools import cache

import simulations.labels as sim
from known_truth.rows import SEED, Row, percent

_TOPICS = (50, 100, 200)  # labelled of each system
_ERRS = {
    "no evidence": "half of what it calls right without evidence is wrong",
    "incomplete": "half of what it calls incomplete is right",
    "independent": "on 10 % of the answers, whatever they are",
    "inverted": "where its verdict looks most probable",
    "perfect": "never",
    "rare": "on 2 % of the answers",
}


@cache
def _all(kind: str, n_topics: int, earlier: int, trials: int) -> dict[int, dict[str, float]]:
    return sim.labelled(kind, n_topics, _TOPICS, earlier, trials, SEED, 4 if earlier else 20)


def _of(kind: str, n_topics: int, earlier: int, n: int, trials: int) -> str:
    found = _all(kind, n_topics, earlier, trials)[n]
    names = ("correct", "hallucination", "difference")
    return (
        f"{', '.join(percent(found[name]) for name in names)} (uniform "
        f"{', '.join(percent(found[f'{name}_uniform']) for name in names)}); widths "
        f"{', '.join(format(found[f'{name}_width'], '.2f') for name in names)}; uniform share {found['share']:.2f}"
    )


def _other(n: int, then: float, now: float, trials: int) -> str:
    found = sim.other_period(n, then, now, trials, SEED)
    return (
        f"{percent(found['coverage'])}, bias {100 * found['bias']:+.1f} points; PPI {percent(found['ppi'])}, bias "
        f"{100 * found['ppi_bias']:+.1f} points"
    )


def _alike(trials: int) -> str:
    found = sim.nearly_all_right(0.98, 0.5, 20, trials, SEED)
    return f"{percent(found['coverage'])}; {percent(found['alike'])} of the draws, least width {found['width']:.2f}"


SECTIONS: dict[str, list[Row]] = {
    "Labels drawn where the judge may err": [
        Row(
            f"{'after earlier labels' if earlier else 'without earlier labels'}, the judge errs {_ERRS[kind]}: "
            "coverage of right answers, hallucinations and a difference; widths by those of uniform labels",
            f"{n} labels of each of two systems, {topics:,} topics"
            + f", {earlier} topics labelled before" * (earlier > 0),
            f"93 to 97 %; {'at most 0.75 at 100' if foreseen and earlier else 'at most 1.10'}",
            "labels were uniform",
            lambda trials, args=(kind, topics, earlier, n): _of(*args, trials),  # type: ignore[misc]
            trials,
        )
        for kind, foreseen, topics, earlier, trials in (
            ("no evidence", True, 4000, 200, 60), ("incomplete", True, 4000, 200, 60),
            ("no evidence", True, 2000, 0, 60), ("independent", False, 2000, 0, 60),
            ("inverted", False, 2000, 0, 60), ("perfect", False, 2000, 0, 60), ("rare", False, 2000, 0, 60),
        )
        for n in _TOPICS
    ],
    "Labels of another period: share of right answers": [
        Row(
            "Rogan-Gladen: coverage and bias; PPI that takes the labels for labels of these answers",
            f"{n} labels with {then:.0%} right, 1,000 answers with {now:.0%} right, sensitivity .9, specificity .8",
            "93 to 97 %",
            "no such estimate",
            lambda trials, args=(n, then, now): _other(*args, trials),  # type: ignore[misc]
        )
        for n, then, now in ((100, 0.5, 0.5), (100, 0.7, 0.4), (200, 0.7, 0.4), (200, 0.8, 0.2), (200, 0.2, 0.9))
    ],
    "Labels that are all alike: share of right answers": [
        Row(
            "coverage; how many draws of labels are all alike",
            "20 labels of 300 answers, drawn by unequal probabilities, .98 right; the judge guesses half of the time",
            "93 % and more",
            "80.0 %; 66.1 % of the draws, least width 0.00",
            _alike,
        )
    ],
}  # fmt: skip
