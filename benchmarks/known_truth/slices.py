"""Averages over slices, differences found in many slices, and slices shrunk towards their common mean."""

from __future__ import annotations

import simulations.slices as sim
from known_truth.rows import FULL, SEED, Row, percent

_NO_SUCH = "no such number"


def _sizes(sizes: list[int]) -> str:
    return " + ".join(map(str, sizes)) if len(sizes) < 5 else f"{len(sizes)} x {sizes[0]}"


_WANTED = "a smaller error; near 0; at least 93 %; narrower"
_KINDS = {
    "right": ("share of right answers", 0.65, 100),
    "high": ("share of right answers", 0.9, 100),
    "score": ("IR score: 1 for right answers, else uniform", 0.65, 100),
    "difference": ("paired difference of right answers, slices of ten topics or more", 0.03, 40),
}


def _in_words(found: sim.Shrinkage) -> str:
    """Every number of slices alone, an arrow, and that of shrunk slices."""
    error, worst, held, width = (
        f"{alone:.1f} → {shrunk:.1f}" for alone, shrunk in (found.error, found.worst, found.held, found.width)
    )
    return f"error {error} points; worst slice {worst}; holds {held} %; width {width}"


def _shrunk(kind: str, n_slices: int, equal: bool, spread: float) -> Row:
    what, mean, trials = _KINDS[kind]
    sizes = "15 topics each" if equal else "3, 8, 15, 40 and 200 topics in turn"
    return Row(
        f"{n_slices} slices, alone → shrunk: {what}",
        f"{sizes}, mean {mean:g}, true spread {100 * spread:g} points",
        _WANTED,
        _NO_SUCH,
        lambda n: _in_words(sim.shrinkage(kind.replace("high", "right"), n_slices, equal, mean, spread, n, SEED)),
        trials,
    )


def _outlier(n: int) -> str:
    found = sim.shrinkage("right", 20, True, 0.7, 0.0, n, SEED, outlier=0.4)
    alone, shrunk = found.last
    return f"{_in_words(found)}; the one slice: holds {alone:.1f} → {shrunk:.1f} %"


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
    "Slices: each alone, and shrunk towards the others": [
        *(
            _shrunk(kind, n_slices, equal, spread)
            for kind in _KINDS
            for n_slices in (5, 20)
            for equal in (True, False)
            for spread in (0.0, 0.05, 0.15)
        ),
        Row(
            "20 slices, alone → shrunk: nineteen are alike, one is 40 points worse",
            "15 topics each, shares 0.7 and 0.3",
            "over all slices at least 93 %; the one slice is held less often",
            _NO_SUCH,
            _outlier,
            100,
        ),
    ],
}
